"""docs/files.md: each line of its table on a file in that tool's layout, made by hand from the tool's documentation."""

import re
import shlex
from pathlib import Path

import pytest

from tests.support.facts import states
from tests.support.process import engine, summary
from tests.support.survey_files import FILES as CORPUS

PAGE = Path(__file__).parents[2] / "stream_engine" / "docs" / "files.md"
SALMON = """alg_ident,head,left,right,winner,loser,puid,response_time,network_latency,score,datetime_received
RR,3,1,2,1,2,p1,1.5,0.1,0.7,2021-05-01 10:00:00.123
RR,3,1,4,4,1,p2,1.1,0.1,0.7,2021-05-01 10:00:03.500
"""
TRIPLET_TOOLS = """head,winner,loser,worker_id,rt,Center,Left,Right,Answer,sampleAlg
1,2,3,w1,900,cat,dog,owl,dog,random
1,1,3,w1,700,cat,cat,owl,cat,check
3,2,3,w2,700,owl,dog,owl,dog,check
2,3,1,w2,800,dog,cat,owl,owl,random
"""
NEXT = """participant_uid,target_center,target_left,target_right,target_winner,timestamp_query_generated
u1,cat,dog,owl,owl,2015-05-29 03:46:14.384
u2,cat,dog,owl,dog,2015-05-29 03:46:18.384
"""
THINGS = "image1\timage2\timage3\tchoice\tRT\tsubject_id\n12\t407\t3\t3\t1500\ts1\n12\t407\t9\t1\t900\ts2\n"
JSPSYCH = """"rt","stimulus","response","trial_type","trial_index","anchor","left","right","subject_id"
"1200","<p>hello</p>","0","instructions","0","","","","s1"
"800","<p>which?</p>","1","html-button-response","1","cat","dog","owl","s1"
"700","<p>which?</p>","0","html-button-response","2","dog","cat","owl","s1"
"""
JSPSYCH_JSON = (
    '[{"rt":1200,"response":null,"trial_type":"html-button-response","anchor":"a","left":"b","right":"c"},'
    '{"rt":800,"response":1,"trial_type":"html-button-response","anchor":"cat","left":"dog","right":"owl"},'
    '{"rt":1,"response":0,"trial_type":"instructions"}]\n'
)


def of_corpus(name, said):
    """A file of the corpus, with what the run says of it; an answer about three objects makes two comparisons."""
    file = CORPUS[name]
    objects = {name for _, *names in file.answers for name in names}
    return file.name, file.text.encode(), len(file.answers), len(objects), 0, said


# beginning of the first column -> name, bytes, comparisons, objects, refused, what the run says
FILES = {
    "this engine": ("a.csv", b"anchor,near,far\na,b,c\n", 1, 3, 0, ""),
    "[salmon]": ("responses.csv", SALMON.encode(), 2, 4, 0, "anchor=head,near=winner,far=loser,participant=puid"),
    "[tripletTools]": (
        "t.csv",
        TRIPLET_TOOLS.encode(),
        2,
        3,
        0,
        "Center,shown=Left|Right,chosen=Answer,catch=C",
    ),
    "[NEXT]": ("participants.csv", NEXT.encode(), 2, 3, 0, "anchor=target_center"),
    "[THINGS]": ("triplets.csv", THINGS.encode(), 4, 4, 0, "odd_one_out --columns 'objects=image1|image2|image3"),
    "THINGS, trainset": ("trainset.txt", b"12 407 3\n1 2 3\n", 4, 5, 0, ""),
    "[jsPsych]": ("data.csv", JSPSYCH.encode(), 2, 3, 0, "--type pick"),
    "jsPsych as JSON": ("data.json", JSPSYCH_JSON.encode(), 1, 3, 0, "--type pick"),
    "[Qualtrics]": of_corpus("Qualtrics, embedded data, names", "choice_{n}"),
    "[Gorilla]": of_corpus("Gorilla", "chosen=Response"),
    "[PsychoPy]": of_corpus("PsychoPy, arrow keys", "chosen=key_resp.keys"),
    "[lab.js]": of_corpus("lab.js", "participant=participant_id"),
    "[oTree]": of_corpus("wide, oTree", "triplets.{n}.player.choice"),
    "[Label Studio]": of_corpus("label-studio, JSON", "annotations.completed_by"),
    "[Meadows]": of_corpus("Meadows, tree", "participant=participation"),
    "Meadows, annotations": of_corpus("Meadows, annotations", ""),
    "MTurk": of_corpus("MTurk, batch results", "participant=WorkerId"),
    "Google Forms": of_corpus("Google Forms", "Which is more similar to {a}"),
    "[cblearn]": ("triplets.csv", b"i,j,k\n3,1,4\n", 1, 3, 0, "anchor=i,near=j,far=k"),
    "cblearn, `list-order` by": ("triplets.txt", b"3 1 4\n4 1 3\n", 2, 3, 0, ""),
    "cblearn, `list-count`": ("counts.csv", b"i,j,k,yes,no\n3,1,4,7,3\n", 10, 3, 0, ""),
    "a spreadsheet with": ("book.csv", "anchor;near;far\nÄ;b,5;c\n".encode("utf-8-sig"), 1, 3, 0, ""),
    'a spreadsheet saved as "Unicode': ("book.txt", "anchor\tnear\tfar\r\nÄ\tb\tc\r\n".encode("utf-16"), 1, 3, 0, ""),
    "a spreadsheet from": ("book.csv", "anchor;near;far\nÄ;Ö;Ü\n".encode("cp1252"), 1, 3, 0, ""),
    "rows above": ("q.csv", b"Question 1,,\nShown,,\nanchor,near,far\na,b,c\n", 1, 3, 0, "--skip-rows 2"),
    "pandas": ("p.csv", b"anchor,near,far,time\n16.0,3.0,2.0,2015-05-29 03:46:14.384\n,3.0,2.0,\n", 1, 3, 1, ""),
    "two pictures": ("page.csv", b"anchor,L,R,said\na,b,c,l\nb,a,c,R\n", 2, 3, 0, "shown=L|R,chosen=said"),
    "keys that only": ("page.csv", b"anchor,one,two,key\na,b,c,x\nb,a,c,b\n", 2, 3, 0, ""),
    "counts of votes": ("v.csv", b"anchor,left,right,l,r\na,b,c,7,3\n", 10, 3, 0, ""),
}


def options():
    """First column -> options, of the table of tools."""
    table = PAGE.read_text().split("## Survey tools")[1].split("These forms are read, too:")[0]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in table.splitlines() if line.startswith("|")][2:]
    return {source.strip(): text.strip().strip("`").replace("\\|", "|") for source, _, text in rows}


def test_every_line_of_the_page_has_a_file():
    begun = [next((begin for begin in FILES if source.startswith(begin)), None) for source in options()]
    assert begun == list(FILES)


@pytest.mark.parametrize("begin", FILES)
def test_the_command_reads_the_file(tmp_path, begin):
    name, data, comparisons, objects, refused, said = FILES[begin]
    (tmp_path / name).write_bytes(data)
    given = shlex.split(next(text for source, text in options().items() if source.startswith(begin)))
    arguments = ["run", tmp_path / name, "--state", tmp_path / "s", "--no-refits", *given]
    done = engine(*arguments)
    found = summary(tmp_path / "s")
    assert (found["comparisons"], found["objects"], sum(found["rejected"].values())) == (comparisons, objects, refused)
    assert states(done.stderr, said) if said else "read as" not in done.stderr
    engine(*arguments)
    assert summary(tmp_path / "s")["comparisons"] == comparisons  # nothing is read twice
