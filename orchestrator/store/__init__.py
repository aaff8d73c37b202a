"""Raw records on disk: the truth that everything else is derived from.

    results/<sweep>/sweep.json                        what was asked, and where
    results/<sweep>/trials.json                       its trials, in order
    results/<sweep>/added.json                        trials that the results asked for
    results/<sweep>/<trial>/trial.json                what determines the trial's result
    results/<sweep>/<trial>/environment.json          the preconditions it ran under
    results/<sweep>/<trial>/blocks/003-B.parquet      requests of one block (003-B.json: the rest)
    results/<sweep>/<trial>/outcome.json              how it ended; written last
    results/<sweep>/<trial>/derived.json              its numbers, kept for speed; may be deleted
    results/<sweep>/reported.json                     what the report was made of; may be deleted
    results/<sweep>/suites.json                       the suites that were asked for
    results/<sweep>/suites/<id>/suite.json            what determines what a suite sends
    results/<sweep>/suites/<id>/asked.parquet         requests, answers (record.json: the rest)
    results/<sweep>/suites/<id>/outcome.json          how it ended; written last

Every file is written under a temporary name and renamed, so a reader never sees half of one.
"""

from orchestrator.store.suite_folder import SuiteFolder
from orchestrator.store.sweep_folder import SweepFolder
from orchestrator.store.trial_folder import TrialFolder

__all__ = ["SuiteFolder", "SweepFolder", "TrialFolder"]
