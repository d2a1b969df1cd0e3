"""The report in every form: one `Report` in, text out, or logged elsewhere.

Importing this package registers the renderers and loads none of them: Jinja2, Matplotlib and Rich are imported when
the first report is written, and MLflow when one is logged to it.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from aboveboard.core.report import Report, loggers, renderers

if TYPE_CHECKING:
    from aboveboard.auditing.report.terminal import print_report

__all__ = ["print_report"]

_RENDERERS = {
    "html": ("html", "render_html"),
    "notebook": ("html", "render_notebook"),
    "table": ("terminal", "render_text"),
    "markdown": ("markdown", "render_markdown"),
    "github": ("github", "render_annotations"),
    "junit": ("junit", "render_junit"),
    "sarif": ("sarif", "render_sarif"),
}


def _loader(module: str, name: str) -> Callable[[Report], str]:
    def render(report: Report) -> str:
        text: str = getattr(import_module(f"{__name__}.{module}"), name)(report)
        return text

    return render


renderers.update({format_: _loader(*where) for format_, where in _RENDERERS.items()})


def _log_to_mlflow(report: Report, *args: Any, **options: Any) -> str:
    run_id: str = import_module(f"{__name__}.mlflow").log_to_mlflow(report, *args, **options)
    return run_id


loggers["mlflow"] = _log_to_mlflow


def __getattr__(name: str) -> Any:
    if name == "print_report":
        return import_module(f"{__name__}.terminal").print_report
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
