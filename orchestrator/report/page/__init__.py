"""The report as one HTML page: verdict, why, details on demand; no network, no other file."""

from orchestrator.report.page.page import html_report

__all__ = ["html_report"]
