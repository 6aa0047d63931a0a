"""That stress tests are marked, and how long they are without ``--long``."""


def test_the_short_form_is_played_unless_the_whole_is_asked_for(request, tries):
    assert request.node.get_closest_marker("stress")
    assert tries(3, 20) == (20 if request.config.getoption("--long") else 3)
