"""The Python module against the program: test_stepsim.py [-v]. The program is the package's own or the one in PATH."""

import tempfile
import unittest
from pathlib import Path

import stepsim

GPT2 = {"model": {"preset": "gpt2-124m"}, "train": {"global_batch": 64}, "cluster": {"system": "dgx-h100"}}


def rows(table):
    """The rows of a DataFrame or of a list."""
    return table if isinstance(table, list) else table.to_dict("records")


class Predict(unittest.TestCase):
    def test_a_model_by_name(self):
        r = stepsim.predict(model="llama3-8b", system="dgx-h100", gpus=64)
        self.assertGreater(r.prediction.step_time_s, 1)
        self.assertEqual(r.to_dict()["prediction"]["step_time_s"], r["prediction"]["step_time_s"])
        self.assertEqual(r.config.cluster.nodes, 8)

    def test_dict_text_and_path_are_one_config(self):
        text = "model: {preset: gpt2-124m}\ntrain: {global_batch: 64}\ncluster: {system: dgx-h100}\n"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.yaml"
            path.write_text(text)
            times = {stepsim.predict(c).prediction.step_time_s for c in (GPT2, text, path, str(path))}
        self.assertEqual(len(times), 1)

    def test_overrides(self):
        a = stepsim.predict(GPT2, train__micro_batch=2, train__fused=False)
        b = stepsim.predict(GPT2, set={"train.micro_batch": 2, "train.fused": False})
        self.assertEqual((a.config.train.micro_batch, a.config.train.fused), (2, False))
        self.assertEqual(a.config.to_dict(), b.config.to_dict())

    def test_a_wrong_key_is_an_error_with_its_line(self):
        with self.assertRaises(stepsim.Error) as caught:
            stepsim.predict({**GPT2, "modle": {}})
        self.assertRegex(str(caught.exception), r"modle.*model")
        self.assertEqual(caught.exception.exit_code, 2)
        self.assertNotIn("\n", str(caught.exception))

    def test_an_unknown_attribute_names_those_there(self):
        with self.assertRaisesRegex(AttributeError, "prediction"):
            stepsim.predict(GPT2).predicted


class Tables(unittest.TestCase):
    def test_sweep(self):
        table = rows(stepsim.sweep(GPT2, vary={"train.micro_batch": [1, 2]}))
        self.assertEqual([r["train.micro_batch"] for r in table], [1, 2])
        self.assertGreater(table[0]["prediction.step_time_s"], 0)

    def test_plan_is_sorted_by_time(self):
        times = [r["step_time_s"] for r in rows(stepsim.plan(model="gpt2-124m", gpus=8))]
        self.assertGreater(len(times), 1)
        self.assertEqual(times, sorted(times))

    def test_compare(self):
        table = rows(stepsim.compare(model="gpt2-124m", gpus=8, systems=["dgx-h100", "dgx-a100"]))
        self.assertEqual({r["name"] for r in table}, {"dgx-h100", "dgx-a100"})


if __name__ == "__main__":
    unittest.main()
