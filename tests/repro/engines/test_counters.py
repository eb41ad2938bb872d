"""An engine's counters are read as it writes them; what is none of that is refused, whatever it is."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.errors import BadInput, CannotRun
from kb.http.stream import Endpoint
from kb.repro.engines.counters import parse_counters, read_counters
from tests.repro.engines import hostile

VLLM = r"""# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="smollm2"} 0.0
vllm:prefix_cache_queries_total{engine="0",model_name="smollm2"} 1500.0
vllm:prefix_cache_queries_created{engine="0",model_name="smollm2"} 1.7960977126092563e+09
vllm:prefix_cache_hits_total{engine="0",model_name="smollm2"} 256.0
vllm:num_preemptions_total{engine="0",model_name="smollm2"} 3.0
vllm:num_preemptions_total{engine="1",model_name="smollm2"} 4.0
vllm:cache_config_info{block_size="128",name="a \"quoted\" \\ b, c=\"d\"",num_gpu_blocks="728"} 1.0
process_cpu_seconds_total 12.5
"""
SGLANG = """sglang:prompt_tokens_total{model_name="m"} 128201.0
sglang:cached_tokens_total{model_name="m"} 97657.0
sglang:token_usage{model_name="m"} 0.28
"""
LLAMA = """llamacpp:prompt_tokens_total 930
llamacpp:prompt_tokens_cached_total 900
llamacpp:tokens_predicted_total 24
"""


def test_vllm_counts_over_all_its_engines():
    found = parse_counters(VLLM.splitlines())
    assert found.engine == "vllm"
    assert found.values == {"looked_up_tokens": 1500, "hit_tokens": 256, "preemptions": 7}


def test_what_it_says_of_its_cache_keeps_quotes_commas_and_backslashes():
    settings = parse_counters(VLLM.splitlines()).settings
    assert settings == {"block_size": "128", "name": 'a "quoted" \\ b, c="d"', "num_gpu_blocks": "728"}


def test_sglang_and_llama_cpp_count_hits_too():
    one, other = parse_counters(SGLANG.splitlines()), parse_counters(LLAMA.splitlines())
    assert (one.engine, one.values["hit_tokens"], one.values["looked_up_tokens"]) == ("sglang", 97657, 128201)
    assert (other.engine, other.values["hit_tokens"], other.values["computed_tokens"]) == (
        "llama.cpp",
        900,
        930,
    )


def test_only_what_grew_counts():
    after = parse_counters(LLAMA.replace("930", "1000").splitlines())
    assert after.since(parse_counters(LLAMA.splitlines()))["computed_tokens"] == 70


def test_a_counter_that_ran_backwards_gives_no_number():
    before = parse_counters(LLAMA.splitlines())
    with pytest.raises(CannotRun, match="counters not used"):
        parse_counters(LLAMA.replace("930", "9").splitlines()).since(before)
    with pytest.raises(CannotRun, match="counters not used"):
        parse_counters(SGLANG.splitlines()).since(before)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("process_cpu_seconds_total 12.5", id="no-engine"),
        pytest.param("<html>", id="a-page"),
        pytest.param("vllm:num_preemptions_total -3", id="negative"),
        pytest.param("vllm:num_preemptions_total NaN", id="not-a-number"),
        pytest.param("vllm:num_preemptions_total +Inf", id="infinite"),
        pytest.param("vllm:num_preemptions_total three", id="a-word"),
        pytest.param('vllm:num_preemptions_total{a="b" 3', id="an-open-brace"),
        pytest.param("vllm:x 1\n" * 200_001, id="lines-without-end"),
    ],
)  # fmt: skip
def test_another_text_is_refused(text):
    with pytest.raises(BadInput, match="metrics not read"):
        parse_counters(text.splitlines())


@given(st.lists(st.text(alphabet=st.sampled_from('vlm:_total{}"\\= \t,19.eE+-NaN'), max_size=60), max_size=8))
def test_whatever_the_lines_are_they_are_read_or_refused(lines):
    try:
        found = parse_counters(lines)
    except BadInput:
        return
    assert all(value >= 0 for value in found.values.values())


def test_labels_of_a_megabyte_take_no_time():
    began = time.process_time()
    parse_counters(['vllm:cache_config_info{a="' + '\\"' * 500_000 + '"} 1'])
    with pytest.raises(BadInput):
        parse_counters(["vllm:x{" + "}" * 500_000])
    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    "behave",
    [
        hostile.silent,
        hostile.trickles,
        hostile.one_long_line,
        hostile.resets_at_once,
        hostile.answering("500 Internal Server Error"),
        hostile.answering("200 OK", b"\xff\xfe<html>"),
    ],
)
def test_a_server_that_does_not_answer_well_gives_no_counters(serve, behave, monkeypatch):
    monkeypatch.setattr("kb.repro.engines.counters.WITHIN_S", 0.5)
    server = serve(hostile.good)
    server.metrics = behave
    with pytest.raises(CannotRun, match="/metrics: not read"):
        read_counters(Endpoint(server.url))
