"""Names in Chinese script: a text is cut into words and names in the way that is most likely.

A cut costs the negative logarithm of its likelihood, counted twice so that costs are whole numbers. A name costs what
its surname and the letters of its given name cost; words that announce a name and titles make it cheaper.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import NamedTuple

from agentunit.addons.names.script_tables import table
from agentunit.privacy.detection.gazetteer import word_set

_HAN = "\u3400-\u9fff"
_RUN = re.compile(rf"[{_HAN}]+")
_FREQUENT_LAST = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈姚卢姜"
    "崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严武戴莫孔向汤"
)
_FOREIGN = frozenset(
    "翰阿埃艾安奥巴白贝本比彼毕伯博布查达大戴丹德迪蒂丁杜多厄尔恩法菲费芬弗福夫盖格戈古哈海汉赫亨霍基吉加杰金卡凯康考科克肯库奎拉莱兰朗劳勒雷里利莉林琳卢鲁伦罗洛"
    "马玛迈麦曼梅门蒙米密莫默姆穆纳娜奈内尼妮诺欧帕潘佩皮珀普奇乔切琼丘萨赛桑森沙施什史斯丝苏索塔泰汤唐特提廷图托瓦万旺威韦维温文沃乌伍西希夏肖谢辛休雅亚延杨伊因尤约泽扎詹珍朱佐兹娅瑞"
)
# Letters that write the sounds of foreign words: three or more in a row are one, and no name with a surname.
_SOUNDS = _FOREIGN | frozenset(
    "爱昂澳塞浦路伐地瓜委及介茨胡娃察莎贾夸匡蒂代岱当道登邓邦堡宾波勃采策楚慈措茨顿敦坦汀腾滕通突贡圭果黑亥华惠霍怀吉季贾江杰津喀坎康柯孔寇宽魁蓝雷黎立丽连廉列烈隆龙"
    "娄吕律略玛毛茂美孟弥缅明摩牟慕南楠瑙讷尼涅宁纽农努女诺庞培彭蓬匹平泼颇齐恰钱强桥琴青群让热荣茹儒撒桑瑟森山尚舍申圣施寿舒顺朔松所太坛韬提田铁吞陀瓦外旺魏翁武锡晓谢信兴雄修许宣逊雅扬尧耶叶因英永尤于约云早增宰赞泽展章哲珍治中仲祖佐"
)
_FOREIGN_PART = f"[{''.join(sorted(_FOREIGN))}]{{1,7}}"
_FOREIGN_NAME = re.compile(rf"{_FOREIGN_PART}(?:[·•・]{_FOREIGN_PART}){{1,3}}")
_TITLES = (
    "先生|女士|小姐|太太|夫人|老师|经理|医生|教授|博士|主任|律师|同学|总监|总裁|总经理|董事长|师傅|护士|阿姨"
    "|叔叔|大夫|校长|工程师|会计|秘书|主管|同志|院长|部长|局长|处长|科长|队长|店长|客服"
)
_TITLE = re.compile(_TITLES)
_SURNAME_TITLE = re.compile(rf"(?:{_TITLES}|总(?![{_HAN}])|工(?![{_HAN}])|女士)")
_CUE = re.compile(
    "(?:我叫|我是|他叫|她叫|名叫|叫做|叫|姓名|姓名是|姓名为|名字|名字是|名字叫|联系人|联系人是|收件人|收货人|寄件人|客户|顾客|乘客|患者|病人|员工|用户|同事|尊敬的|亲爱的"
    "|请找|联系|致电|感谢|由|跟|与|和|给|找|会员|申请人|负责人|经办人|持卡人|投保人|旅客|司机|朋友|丈夫"
    "|妻子|儿子|女儿|弟弟|哥哥|姐姐|妹妹|律师|医生|经理|老师|教授)[:：是为,，]?[ 　]?\\Z"
)
_PRIOR = 16
"""What any name costs beside its letters."""
_ALONE, _PAIR = 3, 1
"""What it costs that a given name has one letter, or two."""
_FREQUENT, _RARE, _DOUBLE = 8, 15, 12
_UNKNOWN = 34
_TITLE_SAVES, _CUE_SAVES, _EDGE_SAVES, _VERB_SAVES = 12, 9, 3, 3
_LONGEST_WORD = 4
_SHORTEST_FOREIGN, _LONGEST_FOREIGN = 3, 9
_FOREIGN_BASE, _FOREIGN_LETTER, _LIKE_A_NAME = 20, 7, 10
"""What a foreign word costs, each of its letters, and that it is as long as a name and begins with a surname."""
# What makes a place, a people or a language of the letters before it.
_PLACE_END = re.compile(
    "[市县区省州镇乡旗盟郡岛湾港河湖族语岭屿]|[山江](?!先|女|小)|自治|地区|街道|新区|大街|大道|村(?![上])|群岛|半岛|海峡|共和国|王国|公国|联邦"
    # People of a place, unless it goes on about somebody: "王海燕人很好", "张伟人在北京".
    "|人(?![说给的已在很不呢挺真太好去来也都还就没怎特超又])"
)
_NEVER_LAST = frozenset("市县区省镇乡旗盟郡族语岛屿府")
_NEVER_INSIDE = frozenset("去到的了在来是吗呢吧把被让从我你您他她它们这那哪")
_BEFORE_WEEK = frozenset("上下本每一两几这那数")
_TOWARD_PLACE = re.compile(
    "(?:住在|前往|飞往|位于|地址|城市|省份|地区|国家|目的地|籍贯|抵达|途经|去)[:：是为]?[ 　]?\\Z"
)
# One also goes to people: "去张志强家".
_AT_SOMEBODYS = re.compile("家(?![族乡县])|那[里儿边]?|身边|办公室")
# Letters that hardly stand in given names but in most foreign words.
_FOREIGN_SOUNDS = frozenset("尔姆斯特普拉夫弗勒蒂赫茨扎塔萨卡巴贝厄埃奥什基吉哈伯内戈贾迦")
_FOREIGN_COSTS, _PLACE_COSTS = 8, 10
_LONGEST_RUN = 60
_AFTER = re.compile(
    "说|表示|称|在|的|是|已|要求|申请|负责|您好|你好|今天|昨天|明天|来|去|将|会|有|打|给|为|对|向|签|买|住|想|需要|希望|报告|提交|预订|预定|订|收到|刚|把|被|正|还|也|没|不"
)
_NO_NAMES = word_set(
    """
    高兴 方便 方法 方面 方式 方向 方案 明天 白天 金额 余额 马上 任何 任务 安全 黄金 何时 如何 向您 和你 白色 黄色
    高级 高度
    江苏 金融 钱包 万一 严重 成功 江西 高铁 武汉 任意 程序 程度 范围 沈阳 周末 周年 周一 周二 周三 周四 周五 周六
    周日 于是 由于 对于 关于
    云南 石油 海南 河南 湖南 安徽 安卓 时间 时候 应用 应该 项目 文件 文档 索引 金钥 许可 周后 方可 计算 段落 单元
    和平 宗教 党员 平均 常用 常见 强制 温度 温馨
    """
)


class _Letters(NamedTuple):
    words: dict[str, int]
    given: dict[str, int]
    last: frozenset[str]
    simplified: dict[int, str]


@functools.cache
def _letters() -> _Letters:
    found = table("zh")
    words = {word: int(kind[1:]) for kind, group in found.items() if kind[0] == "w" for word in group}
    given = {letter: int(kind[1:]) for kind, group in found.items() if kind[0] == "g" for letter in group}
    simplified = {ord(pair[0]): pair[1] for pair in found["simplified"]}
    return _Letters(words, given, found["last"], simplified)


def find_chinese_names(text: str) -> Iterator[tuple[int, int]]:
    """Where the names of a text in Chinese script stand.

    >>> text = "昨天王小明给客服打了电话，欧阳娜娜女士和陳先生在等。"
    >>> [text[start:end] for start, end in find_chinese_names(text)]
    ['王小明', '欧阳娜娜', '陳']
    """
    known = _letters()
    plain = text.translate(known.simplified)
    yield from (found.span() for found in _FOREIGN_NAME.finditer(plain))
    for run in _RUN.finditer(plain):
        if plain[run.end() : run.end() + 1] in ("·", "•") or plain[run.start() - 1 : run.start()] in ("·", "•"):
            continue
        yield from _names_in_run(plain, run.start(), run.end(), known)


def _names_in_run(text: str, start: int, end: int, known: _Letters) -> Iterator[tuple[int, int]]:
    """The names on the cheapest way through a run of letters."""
    length = end - start
    best = [0] * (length + 1)
    step: list[tuple[int, bool]] = [(0, False)] * (length + 1)
    foreign = [0] * (length + 1)
    for at in range(length - 1, -1, -1):
        place = start + at
        foreign[at] = foreign[at + 1] + 1 if text[place] in _SOUNDS else 0
        choices = [(_UNKNOWN + best[at + 1], at + 1, False)]
        for size in range(1, min(_LONGEST_WORD, length - at) + 1):
            cost = known.words.get(text[place : place + size])
            if cost is not None:
                choices.append((cost + best[at + size], at + size, False))
        longest = foreign[at]
        for size in range(_SHORTEST_FOREIGN, min(longest, _LONGEST_FOREIGN) + 1):
            cost = _FOREIGN_BASE + _FOREIGN_LETTER * size
            if size == _SHORTEST_FOREIGN and (
                text[place] in _FREQUENT_LAST
                or (text[place] in known.last and _CUE.search(text, max(0, place - 6), place))
            ):
                cost += _LIKE_A_NAME
            choices.append((cost + best[at + size], at + size, False))
        for size, cost in _name_costs(text, place, start, end, known):
            choices.append((cost + best[at + size], at + size, True))
        best[at], to, is_name = min(choices)
        step[at] = (to, is_name)
    at = n_in_words = 0
    names: list[tuple[int, int]] = []
    while at < length:
        to, is_name = step[at]
        if is_name:
            names.append((start + at, start + to))
        elif to - at > 1:
            n_in_words += to - at
        at = to
    # A long run without a comma is a sentence somebody spoke, or a list of letters, in which hardly any make words.
    if length <= _LONGEST_RUN or 3 * n_in_words >= length:
        yield from names


def _name_costs(text: str, place: int, start: int, end: int, known: _Letters) -> Iterator[tuple[int, int]]:
    """The lengths of names that may begin at a place, with what each costs."""
    for n_last in (2, 1):
        last = text[place : place + n_last]
        if last not in known.last or len(last) < n_last:
            continue
        if last == "周" and text[place - 1 : place] in _BEFORE_WEEK and place > start:
            continue
        last_cost = _DOUBLE if n_last == 2 else _FREQUENT if last in _FREQUENT_LAST else _RARE
        is_edge = place == start
        saved = _CUE_SAVES if _CUE.search(text, max(0, place - 6), place) else _EDGE_SAVES if is_edge else 0
        has_cue = saved == _CUE_SAVES
        if not has_cue and last == "从":
            continue
        is_toward_place = _TOWARD_PLACE.search(text, max(0, place - 6), place)
        if _SURNAME_TITLE.match(text, place + n_last):
            yield n_last, _PRIOR + last_cost - _TITLE_SAVES - saved
        for n_given in (1, 2):
            stop = place + n_last + n_given
            name = text[place:stop]
            if stop > end or name[0] == name[1] or name[:2] in _NO_NAMES or name[-2:] in _NO_NAMES:
                continue
            costs = [known.given.get(letter) for letter in name[n_last:]]
            if None in costs or name in known.words or name[-1] in _NEVER_LAST:
                continue
            if not has_cue and (_PLACE_END.match(text, stop) or name[-1] == "州"):
                continue
            if not _NEVER_INSIDE.isdisjoint(name[n_last:]):
                continue
            cost = (
                _PRIOR + last_cost + sum(each for each in costs if each) + (_ALONE if n_given == 1 else _PAIR) - saved
            )
            is_visited = is_toward_place and _AT_SOMEBODYS.match(text, stop)
            if is_toward_place and not is_visited:
                cost += _PLACE_COSTS
            if not has_cue:
                cost += _FOREIGN_COSTS * sum(letter in _FOREIGN_SOUNDS for letter in name[n_last:])
            if _TITLE.match(text, stop):
                cost -= _TITLE_SAVES
            elif _AFTER.match(text, stop):
                cost -= _VERB_SAVES
            elif stop == end:
                cost -= _EDGE_SAVES
            # A name of two letters looks like any word: something must speak for it.
            is_announced = has_cue or is_visited or _TITLE.match(text, stop)
            stands_free = is_edge and (stop == end or (last in _FREQUENT_LAST and _AFTER.match(text, stop)))
            if n_given == 1 and not is_announced and not stands_free:
                continue
            yield n_last + n_given, cost
