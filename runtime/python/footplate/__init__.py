"""What a task in Python is written with: run.task = "python:FILE.py". docs/python-tasks.md has the tour."""

from footplate.task import (Batch, DataSet, Group, Host, Metric, Parameter, Samples, Set, Setting, Settings, State, Statistic, Sums,
                            Task, action)

__all__ = ["Batch", "DataSet", "Group", "Host", "Metric", "Parameter", "Samples", "Set", "Setting", "Settings", "State",
           "Statistic", "Sums", "Task", "action"]
