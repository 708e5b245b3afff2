"""What a line of the doctor's looks like."""

from lamina.cli.doctor import show
from lamina.services.doctor.finding import broken


def test_words_of_others_stay_on_their_line_and_mean_nothing_to_a_terminal(capsys):
    show(broken("API server", "503: down\nok    API server\x1b[2J\u2028", "look"))

    lines = capsys.readouterr().out.splitlines()
    assert 2 == len(lines)
    assert lines[0].endswith("503: down ok    API server [2J ")
