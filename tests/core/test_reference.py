from aboveboard.core.reference import Reference

ADULT = Reference(
    title="Scaling Up the Accuracy of Naive-Bayes Classifiers",
    authors="R. Kohavi",
    venue="KDD",
    year=1996,
    doi="10.1/abc",
    url="https://a.example",
)


def test_a_reference_reads_as_one_line_and_prefers_the_doi():
    assert str(ADULT) == (
        'R. Kohavi, "Scaling Up the Accuracy of Naive-Bayes Classifiers", KDD, 1996. https://doi.org/10.1/abc'
    )
    assert str(Reference(title="T", url="https://a.example")) == '"T". https://a.example'


def test_bibtex_has_all_authors_and_only_the_fields_that_are_known():
    text = Reference(title="A Title", authors="A. First, B. Second", year=2020).bibtex()
    assert text.splitlines() == [
        "@inproceedings{first2020title,",
        "  title = {{A Title}},",
        "  author = {A. First and B. Second},",
        "  year = {2020}",
        "}",
    ]


def test_bibtex_escapes_what_tex_would_read_as_commands():
    assert "title = {{Profit \\& Loss: 5 \\% of \\#1}}" in Reference(title="Profit & Loss: 5 % of #1").bibtex("k")


def test_a_key_can_be_given():
    assert ADULT.bibtex("kohavi").startswith("@inproceedings{kohavi,")


def test_it_round_trips():
    assert Reference.from_dict(ADULT.to_dict()) == ADULT
