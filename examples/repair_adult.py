"""Audit a model, repair what the audit found, and audit the repaired decisions.

Run it with ``python examples/repair_adult.py``; it writes ``before.html`` and ``after.html`` into the current folder.
"""

from sklearn.ensemble import HistGradientBoostingClassifier

import aboveboard
from aboveboard.data import load_adult
from aboveboard.fairness import RandomizedFairClassifier


def main() -> None:
    train, test = load_adult(split="train"), load_adult(split="test")
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", max_iter=50, random_state=0)
    model.fit(train.X, train.y)
    before = aboveboard.audit(model, test.X, test.y, sensitive_features=["sex"], only="group_fairness")

    fair = RandomizedFairClassifier(model, constraint="demographic_parity", random_state=0)
    fair.fit(train.X, train.y, sensitive_features=train.X["sex"])
    # The coin, where one is needed, is derived from the record id: the same person gets the same answer again.
    decisions = fair.predict(test.X, sensitive_features=test.X["sex"], record_ids=test.X.index)
    after = aboveboard.audit(
        None,
        test.X,
        test.y,
        predictions=decisions,
        prediction_type="label",
        sensitive_features=["sex"],
        only="group_fairness",
    )

    for name, report, answers in (("before", before, model.predict(test.X)), ("after", after, decisions)):
        accuracy = (answers == test.y).mean()
        selected = test.X.assign(selected=answers == test.positive).groupby("sex", observed=True)["selected"].mean()
        print(f"{name}: accuracy {accuracy:.3f}, selected {selected.round(3).to_dict()}, worst finding {report.worst}")
        report.to_html(f"{name}.html")
    print(fair.certificate_.guarantee)


if __name__ == "__main__":
    main()
