"""What a task in Python is written with: run.task = "python:FILE.py". docs/python-tasks.md has the tour."""

import difflib

from footplate.task import (Batch, DataSet, Group, Host, Metric, Parameter, Samples, Set, Setting, Settings, State, Statistic, Sums,
                            Task, action)

__all__ = ["Batch", "DataSet", "Group", "Host", "Metric", "Parameter", "Samples", "Set", "Setting", "Settings", "State",
           "Statistic", "Sums", "Task", "action"]


def __getattr__(name):
    near = difflib.get_close_matches(name, __all__, 1)
    raise AttributeError(f"module 'footplate' has no attribute {name!r}" + (f"; did you mean {near[0]}?" if near else ""))
