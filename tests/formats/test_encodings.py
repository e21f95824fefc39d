"""Text that is not UTF-8: the encoding that a message names, and what is read in it."""
# ruff: noqa: RUF001

import json

import pytest

from stream_engine.data.suspicious_names import suspicious_names
from stream_engine.formats.encodings import encoding_in_words, likely_encodings
from tests.support.process import engine, summary

WORDS = {
    "cp1250": [
        "żelazko koń jabłko bęben krzesło",
        "kočka kůň myš řeka vůl",
        "třešeň švestka čokoláda",
        "szőlő körte gyűrű dió",
    ],
    "cp1251": ["яблоко груша слива кошка дом", "їжак кіт собака яблуко"],
    "cp1252": [
        "Hämmer Nägel Säge Brötchen",
        "café thé gâteau forêt",
        "niño señor jamón árbol",
        "Ä Ö Ü",
        "Käse Brot Ei",
    ],
    "cp1253": ["μήλο αχλάδι σπίτι γάτα"],
    "cp1254": ["elma çilek şeftali ağaç ışık"],
    "cp1255": ["תפוח אגס בית חתול"],
    "cp1256": ["تفاح كمثرى بيت قط"],
    "cp932": ["りんご なし 家 猫 フォーク"],
    "gb18030": ["苹果 梨 房子 猫"],
    "cp949": ["사과 배 집 고양이"],
    "big5": ["蘋果 梨 房子 貓"],
    "cp1257": ["obuolys kriaušė ąžuolas ėriukas šuo", "ābols ķirsis gliemežvāks žirafe"],
    "cp852": ["łódź żaba gęś jeż koń", "žába kůň ještěrka čáp", "szőlő körte gyűrű"],
    "cp850": ["Möhre Nüsse Äpfel Kürbis", "pêche mûre pâtisson", "jalapeño"],
    "cp866": ["кошка собака лошадь ёж заяц"],
    "koi8_r": ["кошка собака лошадь щука рысь", "Кошка Собака"],
    "cp1125": ["їжак кіт собака яблуко груша ґанок"],
    "iso8859_2": ["łódź żaba gęś źrebię świnia", "ještěrka kůň myš žába"],
    "iso8859_5": ["кошка собака лошадь рысь"],
    "mac_cyrillic": ["кошка заяц рысь бык змея"],
    "mac_latin2": ["žába ještěrka kůň čáp", "szőlő fűz tölgy"],
    "mac_roman": ["Süßholz Möhre Nüsse", "pêche mûre pâtisson", "jalapeño"],
    "euc_jp": ["りんご なし 柿 梨 フォーク"],
    "iso2022_jp": ["りんご なし 柿 梨 フォーク"],
    "cp874": ["ส้ม กล้วย มะม่วง แตงโม"],
    "cp857": ["çilek şeftali kayısı ağaç"],
    "cp737": ["μήλο αχλάδι σπίτι γάτα"],
}


def table(words: str, header: str = "anchor;near;far") -> str:
    """Every word compared with the two after it, three times."""
    names = words.split()
    rows = [";".join([*names, *names][at : at + 3]) for at in range(len(names))]
    return "\r\n".join([header, *3 * rows]) + "\r\n"


@pytest.mark.parametrize(("encoding", "words"), [(encoding, each) for encoding in WORDS for each in WORDS[encoding]])
def test_the_right_encoding_is_among_the_likely_ones_with_a_word_that_tells(encoding, words):
    likely = likely_encodings(table(words).encode(encoding))
    word = dict(likely)[encoding]
    assert not word.isascii() and word in words.split()
    assert [each.word for each in likely].count(word) == 1, "another encoding reads the same word"
    assert likely[0].encoding == encoding or len(words.split()) < 3, "with few words, Excel on Windows comes first"
    assert f"--encoding {encoding}" in encoding_in_words(table(words).encode(encoding))


def test_where_two_encodings_are_likely_one_is_read_and_the_other_named(tmp_path):
    (tmp_path / "p.csv").write_bytes(table(WORDS["cp1250"][0]).encode("cp1250"))
    shown = json.loads(engine("preview", tmp_path / "p.csv", "--json").stdout)
    assert shown["comparisons"] == 15 and shown["refused"] == {}
    (notice,) = (each for each in shown["notices"] if "UTF-8" in each)
    assert "--encoding cp1250 reads 'bęben'; if that is wrong, " in notice
    run = engine("run", tmp_path / "p.csv", "--state", tmp_path / "s", "--no-refits", "--encoding", "cp1250").stderr
    assert "UTF-8" not in run and summary(tmp_path / "s")["objects"] == 5


def test_a_header_in_another_encoding_is_read_before_its_columns_are_asked_for(tmp_path):
    path = tmp_path / "j.csv"
    path.write_bytes(table(WORDS["cp932"][0], "刺激A;刺激B;回答").encode("cp932"))
    process = engine("preview", path, status=None)
    said = process.stdout + process.stderr
    assert "回答" in said and "--encoding cp932" in said, said
    mapped = engine("preview", path, "--columns", "anchor=刺激A,near=刺激B,far=回答", status=None)
    assert "--encoding cp932 if '刺激A' is right" in mapped.stdout + mapped.stderr


def test_a_text_that_is_not_utf8_is_never_read_without_a_word_of_it(tmp_path):
    """Even where one encoding alone is likely, where one row of many is not UTF-8, and where all bytes are ASCII."""
    plain = "anchor;near;far\r\n" + 30 * "apple;pear;fig\r\nplum;fig;kiwi\r\n"
    for name, text, encoding in (
        ("de", table(WORDS["cp1252"][0]), "cp1252"),
        ("pl", table(WORDS["cp1250"][0]), "cp852"),
        ("es", plain + "apple;jalapeño;fig\r\n", "cp1252"),
        ("ja", table(WORDS["iso2022_jp"][0]), "iso2022_jp"),
    ):
        (tmp_path / f"{name}.csv").write_bytes(text.encode(encoding))
        shown = json.loads(engine("preview", tmp_path / f"{name}.csv", "--json").stdout)
        (notice,) = (each for each in shown["notices"] if "not UTF-8" in each and "if that is wrong" in each)
        assert f"--encoding {encoding} reads" in notice and shown["refused"] == {}, name


def test_bytes_that_no_common_encoding_reads_are_said_to_be_so():
    unreadable = bytes(byte for byte in range(128, 256)) * 2
    assert likely_encodings(unreadable) or "none of cp1252" in encoding_in_words(unreadable)
    assert encoding_in_words(unreadable).startswith("--encoding ")


def test_names_that_differ_in_a_mark_of_direction_are_suspicious():
    assert suspicious_names(["סוס", "\u200fסוס", "כיסא"]) == [["סוס", "\u200fסוס"]]
