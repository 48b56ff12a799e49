"""The table of scenarios is made of what runs have reported."""

from pathlib import Path

from tools.scenarios import HEAD, page, results

RUN = """<?xml version="1.0"?><testsuites><testsuite name="pytest">
<testcase classname="tests.scenarios.test_ends" name="test_clean_up[kube-nothing stays]" time="12.34"/>
<testcase classname="tests.scenarios.test_ends" name="test_a_lost_one[NOTSET]"><skipped/></testcase>
<testcase classname="tests.scenarios.test_again" name="test_it_goes_on[kube]" time="7.6"><failure/></testcase>
<testcase classname="e2e.tests.test_cluster" name="test_a_node_comes_back" time="1.0"/>
</testsuite></testsuites>"""
EMBEDDED = """<testsuites><testsuite name="pytest">
<testcase classname="tests.scenarios.test_ends" name="test_clean_up[embedded-nothing stays]@supervised" time="3"/>
</testsuite></testsuites>"""
TABLE = """
## again

| | embedded | 1.37.2 |
| --- | ---: | ---: |
| it goes on | – | failed |

## ends

| | embedded | 1.37.2 |
| --- | ---: | ---: |
| clean up: nothing stays | 3 | 12 |
| a lost one | – | – |
"""


def test_each_scenario_has_its_row(tmp_path: Path) -> None:
    columns = {}
    for name, text in (("embedded", EMBEDDED), ("1.37.2", RUN)):
        file = tmp_path / f"{name}.xml"
        file.write_text(text)
        columns[name] = results(file)
    assert page(columns) == HEAD + TABLE
