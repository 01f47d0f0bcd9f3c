"""Names of many origins and scripts are found; prose of other languages, products, logs and versions are left alone."""

from __future__ import annotations

import pytest

from agentunit.privacy.detectors import PatternDetector

DETECTOR = PatternDetector()


def found(text, type="name"):
    return [text[each.start : each.end] for each in DETECTOR.find([text])[0] if each.type == type]


@pytest.mark.parametrize(
    "name",
    [
        "Wang Xiaoming",
        "Ruoxi Tang",
        "Lin Yi-Chun",
        "Chan Tai Man",
        "Park Seo-yeon",
        "Kim Min-jun",
        "Tanaka Hiroshi",
        "Nguyen Van An",
        "Đỗ Văn Hùng",
        "Phạm Thị Lan",
        "Somchai Srisuk",
        "Siriporn Wattanakul",
        "Wanjiku Kamau",
        "Otieno Odhiambo",
        "Ngozi Okafor",
        "Thabo Mokoena",
        "Tadesse Bekele",
        "Mamadou Ndiaye",
        "Shlomo Peretz",
        "Kaveh Rostami",
        "Priya Raghunathan",
        "Nasreen Akhter",
        "Budi Santoso",
        "Maricel Dimaculangan",
        "Ximena Quispe",
    ],
)
def test_names_of_many_origins_are_found_without_a_title(name):
    assert found(f"The parcel goes to {name}.") == [name]
    assert found(f"{name} signed the contract on Monday.") == [name]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("我叫陈美玲,住在上海。", "陈美玲"),
        ("请联系王小明先生。", "王小明"),
        ("张伟已经申请退款。", "张伟"),
        ("尊敬的赵女士:", "赵"),
        ("田中太郎様、こんにちは。", "田中太郎"),
        ("鈴木さんに電話してください", "鈴木"),
        ("저는 김민준입니다.", "김민준"),
        ("박서연 님의 주문", "박서연"),
        ("اسمي محمد العلي وأريد المساعدة", "محمد العلي"),
        ("السيد خالد المنصوري", "خالد المنصوري"),
        ("שמי יעל כהן", "יעל כהן"),
        ("מר אבי מזרחי ביקש החזר", "אבי מזרחי"),
        ("मेरा नाम प्रिया शर्मा है", "प्रिया शर्मा"),
        ("श्री राजेश कुमार ने फोन किया", "राजेश कुमार"),
        ("คุณสมชาย ใจดี โทรมา", "สมชาย ใจดี"),
        ("Mein Name ist Jürgen Kowalczyk.", "Jürgen Kowalczyk"),
        ("Me llamo Yoselin Quispe.", "Yoselin Quispe"),
        ("Call John Smith at the front desk.", "John Smith"),
        ("my name is john smith", "john smith"),
    ],
)
def test_names_in_other_scripts_and_after_other_words(text, name):
    assert found(text) == [name]


@pytest.mark.parametrize(
    "prose",
    [
        "Sehr geehrte Damen und Herren, vielen Dank für Ihre Nachricht. Bitte legen Sie dem Paket den Lieferschein "
        "bei. "
        "Der Zug nach Hamburg fährt um acht Uhr vom Gleis Sieben. Liebe Kundin, Ihr Antrag wurde genehmigt.",
        "Estimado cliente, hemos recibido su pedido. En Semana Santa las oficinas permanecerán cerradas. Se ruega "
        "silencio "
        "en la Sala de Lectura. El Tribunal Supremo ha confirmado la sentencia.",
        "Prezado cliente, recebemos o seu pedido. Olá, boa tarde, o aparelho não funciona. Na Semana Santa os "
        "escritórios "
        "estarão fechados. O Tribunal de Justiça confirmou a sentença.",
        "Bonjour Madame, nous avons bien reçu votre commande. Les Français partent en vacances en Bretagne. Le Conseil "
        "européen continue. Cordialement, le Service Client.",
        "您好,感谢您的来信。黄金周期间,高铁票价格不变。明天白天天气晴朗,方便出行。程序运行成功,金额已退回。",
        "お問い合わせありがとうございます。東京の天気は晴れです。中山間地域の東側。林業の会社です。",
        "안녕하세요, 문의해 주셔서 감사합니다. 이번에는 할인이 적용됩니다. 정말로 죄송합니다.",
        "We run Apache Kafka, Grafana Loki and Jenkins Pipeline; Claude Sonnet wrote it. "
        "Wear Calvin Klein or Hugo Boss.",
        "Thu, 02 May 2024 10:11:12 GMT\nSet-Cookie: sid=38afes7a8; Expires=Thu, 31 Oct 2024 07:28:00 GMT",
        "nginx/1.25.3.1 upgraded from 1.24.0.12 to 10.2.14.3; Chrome/124.0.6367.118; numpy==1.26.4.12; build=10.4.2.1",
        "git clone git@github.com:torvalds/linux.git\n[12345.678901] usb 1-1: new device number 4",
        "EAN 4006381333931 UPC 036000291452 chunk 5551234567 gtin=00012345600012",
    ],
)
def test_texts_without_a_person_give_no_alarm(prose):
    assert [prose[each.start : each.end] for each in DETECTOR.find([prose])[0]] == []


def test_an_address_beside_a_script_without_spaces_is_only_the_address():
    assert found("请联系ada@example.org谢谢你", "email") == ["ada@example.org"]
    assert found("用户@例子.广告", "email") == ["用户@例子.广告"]
    assert found("Accepted publickey for root from 203.0.113.7 port 51234", "ip_address") == ["203.0.113.7"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("My national insurance number is AB 12 34 56 C.", "AB 12 34 56 C"),
        ("Steuer-ID: 86 095 742 719", "86 095 742 719"),
        ("DNI 12345678Z", "12345678Z"),
        ("codice fiscale RSSMRA85T10A562S ok", "RSSMRA85T10A562S"),
        ("BSN 123456782", "123456782"),
        ("CPF 529.982.247-25", "529.982.247-25"),
        ("PAN: ABCPE1234F", "ABCPE1234F"),
        ("taxId: 123456789", "123456789"),
        ("身份证号:11010519491231002X", "11010519491231002X"),
        ("주민등록번호는 900101-1234567", "900101-1234567"),
        ("ИНН 7707083893", "7707083893"),
        ("tax file number 123 456 782", "123 456 782"),
    ],
)
def test_identity_numbers_by_the_words_before_them(text, value):
    assert found(text, "national_id") == [value]


_RANDOM = "Q7mZ2kT9xVb4LpR8sWc1NfJ6hYd3GuA5eKo0"
_HEX = "1e7726876841f0c9b3a2d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f6071829"


@pytest.mark.parametrize(
    "key",
    [
        f"ATATT3x{_RANDOM}{_RANDOM}",
        f"glsa_{_RANDOM[:32]}_1e772687",
        f"secret_{_RANDOM}{_RANDOM[:7]}",
        f"ntn_{_RANDOM}{_RANDOM[:10]}",
        f"pcsk_{_RANDOM}",
        f"sbp_{_HEX[:40]}",
        f"figd_{_RANDOM}",
        "NRAK-V1HI9AYFLCX7QWERTZUIOPASDFG",
        f"dp.pt.{_RANDOM}",
        f"sq0atp-{_RANDOM[:22]}",
        f"MTk4NjIyNDgzNDcxOTI1MjQ4.{_RANDOM[:6]}.{_RANDOM[:30]}",
        f"PMAK-{_HEX[:24]}-{_HEX[:34]}",
        f"sntrys_{_RANDOM}{_RANDOM}",
    ],
)
def test_keys_of_vendors(key):
    assert found(f"use {key} here", "api_key") == [key]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("the password for the admin account is Tr0ub4dor&3", "Tr0ub4dor&3"),
        ("my password is correcthorse", "correcthorse"),
        ("Use Spring2024! as the temporary password.", "Spring2024!"),
        ("Password - Qwerty!23", "Qwerty!23"),
        ("your PIN is 4821", "4821"),
        ("I changed my password to blueberry.", "blueberry"),
        ("pwd hunter2x", "hunter2x"),
        ("Mein Passwort lautet Sommer2024!", "Sommer2024!"),
        ("his password was letmein.", "letmein"),
    ],
)
def test_passwords_in_prose(text, value):
    assert [each.rstrip("!") for each in found(text, "password")] == [value.rstrip("!")]


@pytest.mark.parametrize(
    "text",
    [
        "The password is wrong.",
        "the password was changed yesterday",
        "Reset your password to continue.",
        "the password is case-sensitive",
        "Pin the tab 2024",
        "He passed 1234 votes",
        "Passwords expire after 90 days",
    ],
)
def test_sentences_about_passwords_hold_none(text):
    assert found(text, "password") == []


@pytest.mark.parametrize(
    ("type", "text", "value"),
    [
        ("date_of_birth", "geboren am 3. März 1985", "3. März 1985"),
        ("date_of_birth", "nacido el 3 de marzo de 1985", "3 de marzo de 1985"),
        ("date_of_birth", "Ich bin am 3. Juni 1985 geboren.", "3. Juni 1985"),
        ("date_of_birth", "生年月日 1985年3月14日", "1985年3月14日"),
        ("passport", "my passport, number E12345678", "E12345678"),
        ("passport", "Passport #: C01X00T47", "C01X00T47"),
        ("driver_license", "Führerschein Nr. B072RRE2I55", "B072RRE2I55"),
        ("phone", "手机 13800138000", "13800138000"),
        ("phone", "móvil 612 345 678", "612 345 678"),
        ("phone", "Phone:\n467 3395", "467 3395"),
    ],
)
def test_words_of_other_languages_announce_too(type, text, value):
    assert found(text, type) == [value]


@pytest.mark.parametrize("text", [
    "Su contraseña ha sido cambiada.", "Su lista de deseos está vacía", "Esta senha é curta. Ela precisa de mais.",
    "Tipo de Nota", "Evento de Pago", "Portugués de Brasil",
    "un segundo a partir de ahora", "no pudo ser interpretado en la zona horaria",
])  # fmt: skip
def test_small_words_labels_and_countries_are_no_names(text):
    assert PatternDetector().find([text])[0] == []
