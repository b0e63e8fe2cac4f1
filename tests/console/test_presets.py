#!/usr/bin/env python3
"""Presets by name: they merge into a config like another config, and the settings tell where each value came from."""

import json
import re
import unittest

from harness import HERE, Case

CONFIGS = HERE.parents[1] / "configs"


class Presets(Case):
    def preset(self, name, text):
        path = self.folder / "configs" / "presets" / f"{name}.lua"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def sources(self, *words):
        """What `footplate check` lists: the value of each setting and its source."""
        said = self.check(self.footplate("check", *words), 0).stdout
        return {name: (value, source) for name, value, source in re.findall(r"^(\S+) = (.+?) +-- (.+)$", said, re.MULTILINE)}

    def test_they_merge_from_left_to_right(self):
        self.preset("seldom", "log.every = 100\neval.every = 1000\n")
        self.preset("often", "\n\nlog.every = 2 * log.every\n")
        self.assertEqual(self.sources("good", "seldom"), {"log.every": ("100", "configs/presets/seldom.lua:1"),
                                                          "eval.every": ("1000", "configs/presets/seldom.lua:2")})
        self.assertEqual(self.sources("seldom", "good")["log.every"], ("10", "configs/good.lua:1"))
        self.assertEqual(self.sources("good", "often")["log.every"], ("20", "configs/presets/often.lua:3"))
        self.assertEqual(self.sources("good", "seldom", "often", "log.every=7")["log.every"], ("7", "command line"))

    def test_a_run_keeps_where_a_value_came_from(self):
        self.preset("seldom", "eval.every = 1000\n")
        self.check(self.footplate("run", "good", "seldom", "--batch", fake={"steps": 4}), 0)
        config = json.loads((self.folder / "runs" / "good-1" / "config-1.json").read_text())
        self.assertEqual(config["eval.every"], {"value": 1000, "source": "configs/presets/seldom.lua:1"})
        self.assertEqual(config["log.every"], {"value": 10, "source": "configs/good.lua:1"})

    def test_an_unknown_name_is_answered_with_what_there_is(self):
        self.preset("seldom", "")
        for command in ("run", "check"):
            said = self.check(self.footplate(command, "good", "seldon"), 2).stderr
            for words in ("can't read config seldon", "did you mean seldom?", "configs there are: good", "presets, to follow a config: seldom"):
                self.assertIn(words, said)

    def test_a_config_of_the_same_name_comes_first(self):
        self.preset("good", "log.every = 3\n")
        self.assertEqual(self.sources("good")["log.every"], ("10", "configs/good.lua:1"))

    def test_those_of_this_project_are_documented_and_no_config_hides_one(self):
        presets, configs = ({path.stem for path in folder.glob("*.lua")} for folder in (CONFIGS / "presets", CONFIGS))
        self.assertTrue(presets)
        self.assertFalse(presets & configs)
        page = (CONFIGS.parent / "docs" / "presets.md").read_text()
        for preset in presets:
            self.assertIn(f"| `{preset}` |", page)
            self.assertIn("presets.md", (CONFIGS / "presets" / f"{preset}.lua").read_text().splitlines()[0])


if __name__ == "__main__":
    unittest.main()
