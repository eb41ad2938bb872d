"""The words of pages, figures and feeds in both languages: labels of verdicts and levels, headings, set phrases."""

from __future__ import annotations

from kb.model import Level, Outcome, Text

OUTCOMES: dict[Outcome, Text] = {
    Outcome.HOLDS: Text(zh="成立", en="holds"),
    Outcome.PARTLY: Text(zh="部分成立", en="partly"),
    Outcome.CONTRADICTED: Text(zh="不成立", en="contradicted"),
    Outcome.INCONCLUSIVE: Text(zh="无法判定", en="inconclusive"),
    Outcome.NOT_COMPARABLE: Text(zh="不可比", en="not comparable"),
    Outcome.BLOCKED: Text(zh="受阻", en="blocked"),
    Outcome.UNTESTED: Text(zh="未验证", en="untested"),
}

LEVELS: dict[Level, Text] = {
    Level.DERIVED: Text(zh="推导", en="derived"),
    Level.SIMULATED: Text(zh="仿真", en="simulated"),
    Level.PROXY: Text(zh="代理", en="proxy"),
    Level.MEASURED: Text(zh="实测", en="measured"),
}

LIMITS: dict[Level, Text] = {
    Level.DERIVED: Text(
        zh="推导级证据来自闭式或精确计数，不涉及真实引擎的耗时与吞吐。",
        en="Derived evidence is a closed form or an exact count: it says nothing about time or throughput in an engine.",
    ),
    Level.SIMULATED: Text(
        zh="仿真级证据依赖成本模型，模型没有描述的效应（网络抖动、抢占、调度开销）不在其中。",
        en="Simulated evidence rests on a cost model; what the model leaves out is not in the number.",
    ),
    Level.PROXY: Text(
        zh="代理级证据在另一种规模上真实运行（小模型、CPU 或别的引擎），绝对值不能外推。",
        en="Proxy evidence ran for real at another scale; its absolute values do not carry over.",
    ),
    Level.MEASURED: Text(
        zh="实测级证据只对表中写明的机器类别和条件成立。",
        en="Measured evidence holds for the machine class and conditions that are named.",
    ),
}
"""What each level of evidence does not show."""

CAUSES: dict[str, Text] = {
    "source": Text(zh="出处有新版本", en="source has changed"),
    "claim": Text(zh="论断改过", en="claim was edited"),
    "rule": Text(zh="判定规则改过", en="rule was edited"),
    "code": Text(zh="复现代码改过", en="code has changed"),
    "inputs": Text(zh="输入数据改过", en="inputs have changed"),
    "environment": Text(zh="运行环境已变", en="environment has changed"),
    "age": Text(zh="已过有效期", en="out of date"),
}
"""Why a verdict is stale: the causes of `kb stale`."""

PHRASES: dict[str, Text] = {
    "claim": Text(zh="论断", en="Claim"),
    "stated": Text(zh="出处的数字", en="Source says"),
    "ours": Text(zh="我们的数字", en="Ours"),
    "verdict": Text(zh="判定", en="Verdict"),
    "level": Text(zh="证据等级", en="Level"),
    "date": Text(zh="日期", en="Date"),
    "command": Text(zh="复跑", en="Run again"),
    "evidence": Text(zh="证据", en="Evidence"),
    "figures": Text(zh="图", en="Figures"),
    "reading": Text(zh="阅读清单", en="Reading list"),
    "findings": Text(zh="结论", en="Findings"),
    "not-shown": Text(zh="没有说明什么", en="What this does not show"),
    "relays": Text(zh="转述与出处不符", en="Relayed differently from the source"),
    "superseded": Text(zh="出处已有新版本", en="The source has a newer version"),
    "untested": Text(zh="还没有验证的论断（{n}）", en="Claims nobody has tested yet ({n})"),
    "source": Text(zh="出处", en="Source"),
    "samples": Text(zh="样本", en="samples"),
    "valid-until": Text(zh="有效期至", en="Valid until"),
    "no-date": Text(zh="出处未标日期", en="no date given"),
    "system": Text(zh="系统", en="System"),
    "claims": Text(zh="论断", en="Claims"),
    "ledger": Text(zh="论断总账", en="Ledger of claims"),
    "ledger-intro": Text(
        zh="每个系统有多少条论断、判定如何。论断逐条写在系统的页面上。",
        en="How many claims of each system have which verdict; each claim is told on its system's page.",
    ),
    "system-intro": Text(
        zh="每条论断：出处的数字、我们的数字、判定及其依据、怎样复跑。",
        en="Each claim: the source's figure, ours, the verdict and what it rests on, how to run it again.",
    ),
    "held-note": Text(
        zh="这一块有新的结果在等人决定；下面是上一次被接受的内容。",
        en="A newer result waits for a person's decision; this is what was accepted last.",
    ),
    "home-intro": Text(
        zh="论文和博客里的数字，逐条拿来复核：出处怎么说，我们量到多少，结论靠什么证据。",
        en="Numbers from papers and blogs, checked one by one: what the source says, what we measured, what it rests on.",
    ),
    "to-dark": Text(zh="切换到深色", en="Switch to dark"),
    "to-light": Text(zh="切换到浅色", en="Switch to light"),
    "home": Text(zh="首页", en="Home"),
    "topics": Text(zh="主题", en="Topics"),
    "guides": Text(zh="专题", en="Guides"),
    "systems": Text(zh="系统", en="Systems"),
    "drafts": Text(zh="已接受的简报", en="Accepted briefs"),
    "latest": Text(zh="最近的判定", en="Latest verdicts"),
    "doors": Text(zh="其他入口", en="Other doors"),
    "search": Text(zh="搜索", en="Search"),
    "search-needs-script": Text(
        zh="输入任意词，两个字的中文词、编号和英文都可以；多个词用空格分开。（搜索需要 JavaScript。）",
        en="Any word, number or id; several words are separated by spaces. (Search needs JavaScript.)",
    ),
    "all-claims": Text(zh="全部论断", en="All claims"),
    "any": Text(zh="全部", en="any"),
    "words": Text(zh="包含文字", en="contains"),
    "topic": Text(zh="主题", en="Topic"),
    "stale": Text(zh="陈旧原因", en="Stale because"),
    "table": Text(zh="表格，可左右滚动", en="table, scrolls sideways"),
    "task": Text(zh="待核对", en="to check"),
    "gone": Text(zh="此页已撤回", en="This page was withdrawn"),
    "gone-text": Text(
        zh="它曾经发布，后来退回审阅。地址保留，内容不会被别的替代。",
        en="It was published and went back to review. The address is kept and will not be used for anything else.",
    ),
    "machine-note": Text(
        zh="本页由记录生成；审阅者的文字见中文页。",
        en="Generated from the records; reviewers' notes are on the Chinese page.",
    ),
    "open": Text(zh="未决问题", en="Open questions"),
    "cases": Text(zh="分情形", en="By case"),
    "no-claims": Text(zh="这个主题还没有登记论断。", en="No claim has been registered for this topic yet."),
    "no-reading": Text(zh="还没有被接受的条目。", en="No entry has been accepted yet."),
    "memory": Text(
        zh="另有 {n} 条只凭记忆、尚未核对出处的论断，不在本页显示。",
        en="{n} more claims are known from memory only and are not shown.",
    ),
    "up-to": Text(zh="至多 {x}", en="up to {x}"),
    "at-least": Text(zh="至少 {x}", en="at least {x}"),
    "about": Text(zh="约 {x}", en="about {x}"),
    "range": Text(zh="{x}", en="{x}"),
    "exact": Text(zh="{x}", en="{x}"),
    "not-measured": Text(zh="没有测量", en="not measured"),
    "checked": Text(zh="由核算判定", en="judged by a check"),
    "no-number": Text(zh="不是数字", en="no number"),
    "read-in": Text(zh="读的是 v{a}，现在是 v{b}", en="read in v{a}, now v{b}"),
    "said": Text(zh="{draft} 写作「{said}」", en="{draft} says “{said}”"),
    "keep": Text(zh="保留", en="keep"),
    "watch": Text(zh="关注", en="watch"),
    "undecided": Text(zh="未标决定", en="no decision given"),
    "read": Text(zh="精读", en="read"),
    "review": Text(zh="审稿", en="review"),
    "adopt": Text(zh="采用", en="adopt"),
    "follow": Text(zh="跟踪", en="follow"),
    "figure-data": Text(zh="数据", en="data"),
    "stripes": Text(
        zh="实线为测量或计数，虚线为闭式预测。", en="Solid: measured or counted. Dashed: closed form."
    ),
    "doubt": Text(zh="对数字本身的疑问", en="Doubt about the figure itself"),
    "planned": Text(zh="怎样验证", en="What would test it"),
    "quote": Text(zh="原文", en="Quote"),
    "conditions": Text(zh="条件", en="Conditions"),
}

RELAYS: dict[str, str] = {
    "matches": "与出处一致",
    "bound-dropped": "丢了限定词",
    "different-value": "数值不同",
    "different-unit": "单位不同",
    "different-comparator": "对比对象不同",
    "misattributed": "归因错误",
    "not-in-source": "出处没有这样说",
    "unchecked": "尚未核对",
}
"""Chinese for the keys of `kb.vocab.RELAY_MATCHES`."""


def pick(text: Text, language: str) -> str:
    """The text in ``language``, or in the other one where it has none."""
    return (text.zh or text.en) if language == "zh" else (text.en or text.zh)


def say(key: str, language: str, **values: str) -> str:
    """A set phrase in ``language``."""
    return pick(PHRASES[key], language).format(**values)
