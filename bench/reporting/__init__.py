"""The parts of bench/report.py: inputs (files to points), model (what may be said about them), table, charts, page."""
