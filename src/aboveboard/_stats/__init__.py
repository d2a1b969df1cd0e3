"""Statistics that two areas or more use: intervals, mergeable cells, and bootstraps that do not grow with the rows."""
