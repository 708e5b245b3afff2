"""The parser and the lists behind `make docs-check`, and what it reports about pages that break its rules."""

import os
from collections import Counter
from pathlib import Path

import pytest

import check_docs
from docs_check import lists, shell, sources, usage
from docs_check.links import anchors, broken_links, links
from docs_check.lists import LISTED, ON_TESTBED, RUN, CommandLists, matches, read_lists
from docs_check.pages import Fence, Problems, fences
from docs_check.sessions import PageSession, WrittenFile
from docs_check.shell import ShellCommand

PROGRAMS = frozenset({"lamina", "kubectl", "cat", "make", "openssl", "."})
ROOT = Path(__file__).resolve().parents[2]


def some_lists(**more) -> CommandLists:
    return CommandLists(PROGRAMS, **{"stories": {}, "testbed": {}, "listed": {}, "prepared": {}, **more})


def commands_of(*lines: str) -> tuple[list[str], list[str]]:
    """The commands of a block that starts in line 1, and what is wrong with it."""
    problems = Problems("page.md")
    found = [one.text for one in shell.commands(Fence(1, "sh", (), "", lines), PROGRAMS, problems)]
    return found, problems.found


# --------------------------------------------------------------------------------------------------------------- blocks


@pytest.mark.parametrize(
    ("info", "commands", "cluster", "title"),
    [
        pytest.param("sh", True, False, "", id="commands"),
        pytest.param("sh cluster", True, True, "", id="commands for a cluster"),
        pytest.param("text", False, False, "", id="output"),
        pytest.param("yaml title=first.yaml", False, False, "first.yaml", id="a file"),
        pytest.param("python", False, False, "", id="an excerpt"),
    ],
)
def test_the_info_string_says_what_a_block_holds(info, commands, cluster, title):
    problems = Problems("page.md")
    (fence,) = fences(f"text\n\n```{info}\nlamina x\n```\n", problems)

    assert (fence.holds_commands, fence.needs_cluster, fence.title) == (commands, cluster, title)
    assert (fence.line, fence.lines, problems.found) == (4, ("lamina x",), [])


@pytest.mark.parametrize(
    ("text", "where"),
    [
        pytest.param("```\nlamina x\n```", "page.md:1: the block does not say what it holds", id="no language"),
        pytest.param(
            "\n```console\n$ x\n```", "page.md:2: commands belong in ```sh blocks", id="another name for a shell"
        ),
        pytest.param("```sh clutser\nx\n```", "page.md:1: unknown mark 'clutser'", id="a misspelt mark"),
        pytest.param("\n\n```sh\nlamina x\n", "page.md:3: the block is never closed", id="an open block"),
    ],
)
def test_a_block_that_breaks_the_rules_is_reported_with_its_line(text, where):
    problems = Problems("page.md")
    list(fences(text, problems))

    (found,) = problems.found
    assert found.startswith(where)


def test_a_block_in_a_list_item_loses_its_indentation():
    (fence,) = fences("1. do\n\n   ```sh\n   cat <<E\n     x\n   E\n   ```\n", Problems("page.md"))

    assert fence.lines == ("cat <<E", "  x", "E")


# ------------------------------------------------------------------------------------------------------------- commands


@pytest.mark.parametrize(
    ("lines", "commands"),
    [
        pytest.param(["lamina a", "lamina b"], ["lamina a", "lamina b"], id="one a line"),
        pytest.param(["# why", "", "lamina a  # what"], ["lamina a  # what"], id="comments and empty lines"),
        pytest.param(["lamina a \\", "  --b"], ["lamina a \\\n  --b"], id="a backslash"),
        pytest.param(["cat a |", "  cat"], ["cat a |\n  cat"], id="a pipe at the end"),
        pytest.param(["cat > f <<'E'", "any prose   here", "E", "cat f"], ["cat > f <<'E'\nany prose   here\nE", "cat f"], id="a here-document"),
        pytest.param(["for x in a b; do", "  cat $x", "done"], ["for x in a b; do\n  cat $x\ndone"], id="a loop"),
        pytest.param(["A=1 B=2 lamina a"], ["A=1 B=2 lamina a"], id="variables first"),
        pytest.param(["A=$(cat a -n b)"], ["A=$(cat a -n b)"], id="a variable that holds output"),
        pytest.param(["lamina a 'b   c'"], ["lamina a 'b   c'"], id="spaces in quotes"),
        pytest.param(["lamina a &"], ["lamina a &"], id="in the background"),
    ],
)  # fmt: skip
def test_a_block_is_split_into_commands(lines, commands):
    assert commands_of(*lines) == (commands, [])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        pytest.param("make demo       sets up a virtual environment", "looks like prose beside a command", id="prose beside it"),
        pytest.param("Then look at the result:", "unknown command 'Then'", id="prose"),
        pytest.param('[{"Host":"n2","Score":7}]', "unknown command '[{Host:n2,Score:7}]'", id="output"),
        pytest.param("$ kubectl get nl", "a prompt breaks pasting", id="a prompt"),
        pytest.param("laminate a", "unknown command 'laminate'", id="a misspelt program"),
        pytest.param("cat 'a", "the shell does not understand this", id="an open quote"),
        pytest.param("cat <<E", "the shell does not understand this", id="an open here-document"),
    ],
)  # fmt: skip
def test_what_is_no_command_is_reported_with_its_line(line, words):
    found, problems = commands_of("lamina a", line)

    assert found == ["lamina a"]
    assert [one.startswith("page.md:2: ") and words in one for one in problems] == [True]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        pytest.param("lamina a # why", "lamina a", id="after a space"),
        pytest.param("cat a#b '# c'", "cat a#b '# c'", id="in a word and in quotes"),
        pytest.param("lamina a \\\n   --b   # c", "lamina a --b", id="over two lines"),
    ],
)
def test_patterns_are_matched_without_comments(text, plain):
    assert ShellCommand("page.md", 1, text).plain == plain


# ---------------------------------------------------------------------------------------------------------------- lists


@pytest.mark.parametrize(
    ("pattern", "command", "matched"),
    [
        pytest.param("make demo", "make demo", True, id="the same"),
        pytest.param("make demo", "make demo2", False, id="only its beginning"),
        pytest.param("lamina agent *", "lamina agent --once", True, id="a star"),
        pytest.param("lamina agent *", "lamina agents", False, id="another word"),
        pytest.param("pip install '.[dev]'", "pip install '.[dev]'", True, id="only a star is special"),
    ],
)
def test_a_pattern_is_a_command_with_stars(pattern, command, matched):
    assert matches(pattern, command) == matched


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        pytest.param(ShellCommand("p", 1, "make demo"), (LISTED, "installs"), id="listed"),
        pytest.param(ShellCommand("p", 1, "lamina scheduler -v 2"), (ON_TESTBED, "tests/x.py"), id="by a test"),
        pytest.param(ShellCommand("p", 1, "kubectl get nl", needs_cluster=True), (ON_TESTBED, ""), id="on the testbed"),
        pytest.param(ShellCommand("story", 1, "cat a"), (ON_TESTBED, "tests/y.py"), id="by a story"),
        pytest.param(ShellCommand("p", 1, "cat a"), (RUN, ""), id="here"),
    ],
)
def test_a_command_is_run_here_or_on_the_testbed_or_listed(command, verdict):
    known = some_lists(
        listed={"make demo": "installs"}, testbed={"lamina scheduler *": "tests/x.py"}, stories={"story": "tests/y.py"}
    )

    assert known.verdict(command) == verdict


def test_a_line_of_the_lists_that_matches_nothing_is_reported(monkeypatch, tmp_path):
    text = "[listed]\n'make demo' = 'installs'\n'make tea' = 'takes long'\n"
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "lists.toml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(lists, "LISTS", tmp_path / "a" / "b" / "lists.toml")
    known = some_lists(
        listed={"make demo": "installs", "make tea": "takes long"}, testbed={"lamina x": "tests/gone.py"}
    )
    for text in ("make demo", "lamina x"):
        known.verdict(ShellCommand("p", 1, text))

    stale, gone = known.stale()
    assert stale == "scripts/docs_check/lists.toml:3: matches no page; remove the line"
    assert "there is no tests/gone.py" in gone


def test_the_lists_give_a_reason_in_one_line_for_everything():
    known = read_lists()

    assert [reason for reason in known.listed.values() if not reason or "\n" in reason] == []
    assert len(known.listed) <= 20


# ---------------------------------------------------------------------------------------------------------------- links


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("see [a](b.md#c)", ["b.md#c"], id="in a line"),
        pytest.param("![a](b.svg)", ["b.svg"], id="a picture"),
        pytest.param("[a]: b.md", ["b.md"], id="by reference"),
        pytest.param("[a](https://example.com) [b](mailto:a@b)", [], id="elsewhere"),
        pytest.param("`[a](b.md)`\n```text\n[a](b.md)\n```", [], id="in code"),
    ],
)
def test_relative_links_are_found(text, found):
    assert [link for _, link in links(text)] == found


def test_headings_have_githubs_anchors():
    text = "# What it is\n## `a`, b & c\n## Extender (http, `pair`)\n## Twice\n## Twice\n```text\n# no heading\n```\n"

    assert anchors(text) == {"what-it-is", "a-b--c", "extender-http-pair", "twice", "twice-1"}


def test_a_link_that_leads_nowhere_is_reported_with_its_line(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("# Title\n", encoding="utf-8")
    page = tmp_path / "docs" / "page.md"
    page.write_text(
        "# Page\n[a](gone.md)\n[b](../README.md#title) [c](#page)\n[d](../README.md#no)\n", encoding="utf-8"
    )

    assert broken_links(page, tmp_path) == [
        "docs/page.md:2: the link 'gone.md' is broken; there is no gone.md",
        "docs/page.md:4: the link '../README.md#no' is broken; README.md has no heading #no",
    ]


def test_the_links_of_a_changelog_fragment_start_at_the_root(tmp_path):
    (tmp_path / "changelog.d").mkdir()
    fragment = tmp_path / "changelog.d" / "a.added.md"
    fragment.write_text("[a](changelog.d/a.added.md) [b](a.added.md)\n", encoding="utf-8")

    assert [line.split(": ")[1] for line in broken_links(fragment, tmp_path)] == [
        "the link 'a.added.md' is broken; there is no a.added.md"
    ]


# ---------------------------------------------------------------------------------------------------------------- pages


def test_a_page_is_its_commands_and_files_in_order():
    text = "```yaml title=a.yaml\nx: 1\n```\n```sh\ncat a.yaml\n```\n```sh cluster\nkubectl get nl\n```\n"
    problems: list[str] = []
    page = sources.markdown_page("docs/a.md", text, some_lists(), problems)

    assert page.steps == [
        WrittenFile("a.yaml", "x: 1\n"),
        ShellCommand("docs/a.md", 5, "cat a.yaml"),
        ShellCommand("docs/a.md", 8, "kubectl get nl", needs_cluster=True),
    ]
    assert (page.activated, problems) == (True, [])


def test_what_a_page_does_wrong_is_reported_with_file_and_line():
    text = "# A\n\n```sh\nlamina a     does it\nlaminate\n```\n"
    problems: list[str] = []
    sources.markdown_page("docs/a.md", text, some_lists(), problems)

    assert [one.split(";")[0] for one in problems] == [
        "docs/a.md:4: this looks like prose beside a command",
        "docs/a.md:5: unknown command 'laminate'",
    ]


def test_a_command_for_a_cluster_in_an_unmarked_block_is_reported():
    page = sources.markdown_page("docs/a.md", "```sh\nlamina x\n```\n", some_lists(), [])
    tally = check_docs.Tally()

    assert check_docs.chosen(page, some_lists(testbed={"lamina x": "tests/x.py"}), tally) == []
    assert tally.wrong == ["docs/a.md:2: needs a cluster; mark its block as ```sh cluster"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("lamina agent --once", [["agent", "--once"]], id="alone"),
        pytest.param("A=1 lamina a > b & lamina c | cat", [["a"], ["c"]], id="among others"),
        pytest.param("sudo lamina doctor", [["doctor"]], id="as root"),
        pytest.param("cat 'lamina a' && cat lamina", [], id="never"),
    ],
)
def test_the_calls_of_lamina_in_a_line_are_found(text, words):
    assert list(usage.calls(text)) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("lamina scheduler --observe", None, id="understood"),
        pytest.param("lamina catalog from-cluster x.jsonl", None, id="of a group"),
        pytest.param("lamina --version", None, id="an option only"),
        pytest.param("lamina scheduler --obsrve", "--obsrve", id="a misspelt option"),
        pytest.param("lamina shceduler", "there is no command 'shceduler'", id="a misspelt command"),
        pytest.param("kubectl get --obsrve", None, id="another program"),
    ],
)
def test_a_command_that_is_not_run_is_understood_all_the_same(text, words):
    told = usage.usage_error(ShellCommand("p", 1, text))

    assert told is None if words is None else words in str(told)


def test_what_the_tour_says_to_try_next_is_what_stands_after_its_last_title():
    problems: list[str] = []
    page = sources.demo_page("1  A title ---\nprose\n\nNext ---\nlamina a\nlamina b  # c\n", some_lists(), problems)

    assert [one.text for one in page.commands] == ["lamina a", "lamina b  # c"]
    assert (page.activated, problems) == (False, [])


def test_a_tour_without_a_next_step_is_reported():
    problems: list[str] = []
    sources.demo_page("prose\n", some_lists(), problems)

    assert problems == ["lamina demo:1: it ends without commands to try next; print some"]


def test_the_examples_of_every_help_text_are_a_page():
    problems: list[str] = []
    pages = {page.name: page for page in sources.help_pages(read_lists(), problems)}

    assert {"lamina --help", "lamina simulate --help", "lamina catalog add --help"} <= pages.keys()
    assert ([name for name, page in pages.items() if not page.commands], problems) == ([], [])


# -------------------------------------------------------------------------------------------------------------- running


@pytest.fixture
def session(tmp_path):
    for name in ("lamina", "tmp", "home"):
        (tmp_path / name).mkdir()
    with PageSession(tmp_path / "lamina", ROOT / "src", {"GREETING": "hello"}) as started:
        yield started


def test_a_page_runs_in_one_shell(session, tmp_path):
    texts = ["mkdir a && cd a", "b=1", 'test "$b$GREETING" = 1hello', "cat > f <<'E'\nx\nE", "test -f ../a/f"]

    assert [session.run(text) for text in texts] == [None] * len(texts)
    assert (tmp_path / "lamina" / "a" / "f").read_text(encoding="utf-8") == "x\n"


def test_a_page_has_a_home_and_a_temporary_folder_of_its_own(session, tmp_path):
    assert session.run("echo x > /tmp/note && cp /tmp/note ~/note") is None
    assert (tmp_path / "tmp" / "note").is_file()
    assert (tmp_path / "home" / "note").is_file()


def test_a_command_that_fails_is_told_with_the_end_of_its_output(session):
    assert session.run("echo before") is None
    assert session.run("echo why; false | cat") == "exit code 1\n    why"
    assert session.run("true") is None


def test_a_command_that_ends_the_shell_is_told(session):
    assert session.run("exit 0") == "the shell ended"
    assert session.run("true") == "an earlier command of this page ended the shell"


@pytest.mark.realtime
def test_a_command_that_does_not_end_is_ended(session):
    told = session.run("sleep 1000", within=0.2)

    assert told == "not finished after 0.2 s"
    assert "ended the shell" in str(session.run("true"))


def is_running(pid: int) -> bool:
    """Return whether a process is there and is not a zombie that waits for its adopter."""
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_what_a_page_leaves_in_the_background_ends_with_it(tmp_path):
    for name in ("lamina", "tmp", "home"):
        (tmp_path / name).mkdir()
    with PageSession(tmp_path / "lamina", ROOT / "src", {}) as started:
        assert started.run("sleep 1000 & echo $! > pid") is None
    pid = int((tmp_path / "lamina" / "pid").read_text(encoding="utf-8"))

    # The signal was sent; on a busy machine the process may need a moment to end. The test's timeout is the deadline.
    while is_running(pid):
        os.sched_yield()


def test_the_last_line_has_the_figures_that_are_looked_for():
    said = check_docs.figures(Counter({RUN: 60, LISTED: 2, ON_TESTBED: 3}), failed=1, broken=0)

    assert said == {
        "commands_run": 60,
        "commands_failed": 1,
        "commands_listed": 2,
        "commands_on_testbed": 3,
        "links_broken": 0,
    }
