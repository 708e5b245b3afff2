"""
The click class of every Lamina command: it accepts kubectl's spellings and rejects empty values.

- ``-o=json`` and ``-v=2`` mean ``-o json`` and ``-v 2``. Click alone would read the value as ``=json``.
- An option or argument with an empty value is an error. The usual cause is an unset shell variable, and an empty path
  would silently become the current folder.
- ``-`` as an input file means standard input (`lamina.cli.options.standard_input`).
- An interrupted command reports the files it has written (`lamina.cli.output.interruption`).
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import click

from lamina.cli.options import standard_input
from lamina.cli.output import interruption

_SHORT_WITH_VALUE: Final = re.compile(r"(-[A-Za-z])=(.*)", re.DOTALL)
EMPTY: Final = "the value is empty; write one, or omit the option (is a shell variable not set?)"


class CliCommand(click.Command):
    """A command that accepts kubectl's spellings. Pass it as ``cls`` to ``click.command``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse *args*. Raises one InputError for all empty values."""
        args = list(self._split(args))
        if not ctx.resilient_parsing:
            self._refuse_empty(ctx, args)
        try:
            return super().parse_args(ctx, args)
        except BaseException:
            # Click only closes a context whose command has started; without this, a copy of standard input would stay
            # behind.
            ctx.close()
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an interruption carries a note of the files that were written."""
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, interruption.Terminated) as stop:
            stop.add_note(interruption.report(ctx))
            raise
        except Exception as error:
            standard_input.rename(ctx, error)
            raise

    def _split(self, args: Iterable[str]) -> Iterator[str]:
        """Split ``-o=json`` into two words where ``-o`` takes a value; leave everything after ``--`` alone."""
        valued = {
            name
            for one in self.params
            if isinstance(one, click.Option) and not one.is_flag and not one.count
            for name in one.opts
        }
        options = True
        for word in args:
            options = options and word != "--"
            found = _SHORT_WITH_VALUE.fullmatch(word) if options else None
            if found is not None and found[1] in valued:
                yield from found.groups()
            else:
                yield word

    def _refuse_empty(self, ctx: click.Context, args: list[str]) -> None:
        # Check the words themselves: once converted, an empty path is the current folder.
        given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        empty = [one for one in self.params if any(_is_empty(value) for value in _values(given.get(one.name or "")))]
        if empty:
            from lamina.model.errors import InputError, Mistake

            raise InputError([Mistake(_title(one), EMPTY) for one in empty])


def _values(given: object) -> Iterable[object]:
    return given if isinstance(given, list | tuple) else (given,)


def _is_empty(value: object) -> bool:
    return isinstance(value, str) and not value.strip()


def _title(parameter: click.Parameter) -> str:
    return max(parameter.opts, key=len) if isinstance(parameter, click.Option) else parameter.human_readable_name
