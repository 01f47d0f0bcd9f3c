"""Help in sections, for commands with many options."""

from __future__ import annotations

from collections.abc import Mapping

import click


def in_sections(sections: Mapping[str, tuple[str, ...]]) -> type[click.Command]:
    """A kind of command whose help lists options under headings: each has the names of its options, dashes included.

    Options that no section names come first, as they always do.
    """
    placed = {option: title for title, options in sections.items() for option in options}

    class SectionedCommand(click.Command):
        def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
            groups: dict[str, list[tuple[str, str]]] = {"Options": [], **{title: [] for title in sections}}
            for param in self.get_params(ctx):
                row = param.get_help_record(ctx)
                if row is not None:
                    title = next((placed[name] for name in param.opts if name in placed), "Options")
                    groups[title].append(row)
            for title, rows in groups.items():
                if rows:
                    with formatter.section(title):
                        formatter.write_dl(rows)

    return SectionedCommand
