from __future__ import annotations

from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentunit.addons.language.languages import LANGUAGES, names_a_language, read_language, read_question, same_language

SENTENCES = {
    "en": "I am sorry, but I can not tell you where the parcel is.",
    "de": "Es tut mir leid, aber ich kann Ihnen nicht sagen, wo das Paket ist.",
    "fr": "Je suis désolé, mais je ne peux pas vous dire où est le colis.",
    "es": "Lo siento, pero no puedo decirle dónde está el paquete en este momento.",
    "it": "Mi dispiace, ma non posso dirle dove si trova il pacco in questo momento.",
    "pt": "Desculpe, mas não posso dizer onde está a sua encomenda neste momento, nem quando ela chega.",
    "nl": "Het spijt me, maar ik kan u niet zeggen waar het pakket op dit moment is.",
    "pl": "Przykro mi, ale nie mogę powiedzieć, gdzie jest ta paczka, bo jeszcze jej nie ma.",
    "sv": "Jag kan inte säga var paketet är, men det är på väg till dig.",
    "da": "Jeg kan ikke sige, hvor pakken er nu, men den er på vej til dig.",
    "no": "Jeg vet ikke hvor pakken er nå, men den er på vei til deg.",
    "fi": "En voi kertoa, missä paketti on, mutta se on jo matkalla ja tulee kun voi.",
    "cs": "Je mi líto, ale nemohu vám říci, kde je ten balík, protože už byl odeslán.",
    "tr": "Paket şu an nerede bilmiyorum, ama çok yakında sizin için orada olacak.",
    "ru": "Извините, но я не могу сказать вам, где ваша посылка и когда она будет.",
    "uk": "Вибачте, але я не можу сказати, де ваша посилка і коли вона буде, бо ще її немає.",
    "zh": "对不起，我不能告诉你包裹在哪里，因为这个问题还没有答案。",
    "ja": "申し訳ありませんが、荷物がどこにあるかは分かりません。",
    "ko": "죄송하지만 소포가 어디에 있는지 말씀드릴 수 없습니다.",
    "ar": "لا يمكن أن أقول أين هذا الطرد أو متى يصل إلى هنا",
    "he": "אני מצטער, אבל אני לא יכול לומר לך איפה החבילה.",
    "hi": "मुझे माफ़ करें, मैं यह नहीं कह सकता कि पार्सल कहाँ है और कब आएगा।",
    "el": "Λυπάμαι, αλλά δεν μπορώ να σας πω πού είναι το δέμα.",
    "vi": "Tôi không biết gói hàng ở đâu, nhưng nó sẽ đến với bạn trong tuần này.",
    "id": "Saya tidak tahu di mana paket itu, tetapi akan tiba dalam minggu ini untuk Anda.",
}

SILENT = [
    "", " ", "Paris", "42", "3.14 %", "Yes", "Ja", "OK, danke", "Las Vegas, El Paso, Los Angeles", "Den Haag", "東京",
    "Μ = α + β", "Лев Толстой", "Qutb-ud-din Aibak", "AUS, DEN, DIE", "World War I and II",
    '{"name": "the cat is in the house and we are not"}', '["das ist es und wir sind hier"]',
    "```\nfor x in the_list: and or not is in\n```", "`git add -p` `is the and of`",
    "https://www.example.com/the/and/of/is", "the.and.of@is.that.com", '"Das ist nicht die Frage, ob wir es wollen."',
    "  -r   use BSD sum\n  -s   use V sum\n  -k   blocks of 1 k", "C-3PO, R2-D2, Padmé Amidala (Count Dooku)",
    "12 x 4 = 48", "Bonjour!", "Anna, Bo, Cleo und Dora", "The Beatles", "SELECT * FROM a WHERE b",
    "The house is on the hill and we are in it. Das Haus ist auf dem Hügel, und wir sind nicht da. Wo ist es?",
    "Иванов и Петров say that the house is on the hill",
]  # fmt: skip


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_is_in_its_language(language: str) -> None:
    reading = read_language(SENTENCES[language])
    assert reading is not None
    assert reading.languages[0] == language
    assert str(reading) == LANGUAGES[language]


@pytest.mark.parametrize("text", SILENT)
def test_what_says_too_little_is_in_no_language(text: str) -> None:
    assert read_language(text) is None


@pytest.mark.parametrize("language", SENTENCES)
def test_english_and_any_other_language_differ(language: str) -> None:
    english, other = read_language(SENTENCES["en"]), read_language(SENTENCES[language])
    assert same_language(english, other) is same_language(other, english) is (language == "en")


@pytest.mark.parametrize(
    "wrapped",
    [
        "`{}`", '"{}"', "“{}”", "«{}»", "> {}", "```\n{}\n```", "http://x.com/{}",
    ],
)  # fmt: skip
def test_quotations_and_code_change_no_language(wrapped: str) -> None:
    foreign = wrapped.format(SENTENCES["fr"] if "http" not in wrapped else "le-la-les/des-du-et")
    reading = read_language(f"{SENTENCES['en']}\n{foreign}\n{SENTENCES['en']}")
    assert str(reading) == "English"


def test_kindred_languages_are_not_called_different() -> None:
    either = "De er i byen, og jeg kan se dem."
    assert same_language(read_language(either), read_language(SENTENCES["no"])) is not False
    assert same_language(read_language(either), read_language(SENTENCES["da"])) is not False
    assert same_language(read_language(either), read_language(SENTENCES["fr"])) is False


def test_one_language_in_two_scripts_is_one() -> None:
    latin = read_language("Nije jasno kako je to bilo i gde su oni sada, ali kako kažu biće bolje.")
    cyrillic = read_language("Није јасно како је то било и где су они сада, али како кажу биће боље.")
    assert same_language(latin, cyrillic) is not False


def test_a_script_is_enough_beside_another() -> None:
    bengali = read_language("দুঃখিত, আমি জানি না পার্সেলটি এখন কোথায় আছে")
    assert same_language(read_language(SENTENCES["en"]), bengali) is False
    assert same_language(bengali, bengali) is True
    cyrillic = read_language("Привет, дорогие друзья! Добрый вечер.")
    assert (cyrillic.script, cyrillic.languages) == ("CYRILLIC", ()) if cyrillic else False
    assert same_language(cyrillic, read_language(SENTENCES["ru"])) is None
    assert same_language(cyrillic, read_language(SENTENCES["de"])) is False


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("When is it here, and who has it?", "English"),
        (f"Where is this from, and what is it?\n\n{SENTENCES['fr']}", "None"),
        (f"Summarize this text: {SENTENCES['fr']}", "None"),
        (f"Wo ist das? {SENTENCES['de']}\nUnd wann ist es da?", "German"),
        ("Question: where is the house, and whose is it?", "English"),
    ],
)
def test_a_question_in_several_languages_is_in_none(text: str, expected: str) -> None:
    assert str(read_question(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Say it in French.", "How do you say cat in german?", "Translate: the cat", "Antworte auf Deutsch, bitte.",
        "Bitte übersetzen", "Réponds en anglais.", "Responde en inglés", "Rispondi in inglese", "Responda em português",
        "Antwoord in het Engels", "Svara på engelska", "Svar på engelsk", "Svar på norsk", "Vastaa englanniksi",
        "Odpowiedz po angielsku", "Přelož to", "Odpověz anglicky", "İngilizce cevap ver", "Ответь по-английски",
        "Переведи на английский", "Відповідай англійською", "用英语回答", "英文で", "日本語で答えて",
        "영어로 답해 주세요", "أجب بالإنجليزية", "ענה באנגלית", "अंग्रेज़ी में उत्तर दें", "Απάντησε στα αγγλικά",
        "Trả lời bằng tiếng Anh", "Jawab dalam bahasa Inggris",
    ],
)  # fmt: skip
def test_a_named_language(text: str) -> None:
    assert names_a_language(text)


@pytest.mark.parametrize(
    "text",
    [
        "Where is Germany?", "What is the capital of France?", "Wo liegt Frankreich?",
        "Quelle est la capitale du Japon ?", "¿Dónde está Italia?", "Gdzie leży Polska?", "Где находится Россия?",
        "What is the currency of Japan?", "Is Ukraine in Europe?", "中国的首都是哪里？", "프랑스의 수도는 어디입니까?",
        "Dov'è la Spagna?", "When is it here?",
    ],
)  # fmt: skip
def test_a_country_is_no_language(text: str) -> None:
    assert not names_a_language(text)


@given(st.text(), st.text())
def test_any_text_is_read_and_compared_alike_both_ways(one: str, other: str) -> None:
    first, second = read_question(one), read_language(other)
    assert same_language(first, second) is same_language(second, first)
    assert same_language(second, second) in ((None, True) if second else (None,))
    assert names_a_language(one) in (True, False)


@given(st.sampled_from(sorted(SENTENCES)), st.integers(1, 4))
def test_saying_it_again_changes_nothing(language: str, times: int) -> None:
    assert read_language(" ".join([SENTENCES[language]] * times)) == read_language(SENTENCES[language])


@pytest.mark.parametrize("piece", ["a", "-", '"', "«", "<", "`", "a.", "بال", "1a", "> ", "=", "\n", " a:"])
def test_no_text_takes_long(piece: str) -> None:
    started = perf_counter()
    read_question(piece * 20_000)
    names_a_language(piece * 20_000)
    assert perf_counter() - started < 5
