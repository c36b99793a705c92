"""The case: the folder of everything known about one run, and the charts that its facts are reduced to."""

from trainsleuth.case.folder import Case, CaseError, create_case, open_case

__all__ = ["Case", "CaseError", "create_case", "open_case"]
