"""Which language a text is in, by its script and its function words: sure, or silent."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import NamedTuple

LANGUAGES = {
    "af": "Afrikaans", "ar": "Arabic", "az": "Azerbaijani", "be": "Belarusian", "bg": "Bulgarian", "bn": "Bengali",
    "ca": "Catalan", "ckb": "Kurdish", "cs": "Czech", "cy": "Welsh", "da": "Danish", "de": "German", "el": "Greek",
    "en": "English", "eo": "Esperanto", "es": "Spanish", "et": "Estonian", "eu": "Basque", "fa": "Persian",
    "fi": "Finnish", "fr": "French", "ga": "Irish", "gl": "Galician", "gu": "Gujarati", "he": "Hebrew", "hi": "Hindi",
    "ht": "Haitian Creole", "hu": "Hungarian", "hy": "Armenian", "id": "Indonesian", "is": "Icelandic",
    "it": "Italian", "ja": "Japanese", "ka": "Georgian", "kk": "Kazakh", "km": "Khmer", "kn": "Kannada",
    "ko": "Korean", "la": "Latin", "lb": "Luxembourgish", "lo": "Lao", "lt": "Lithuanian", "lv": "Latvian",
    "mk": "Macedonian", "ml": "Malayalam", "mr": "Marathi", "my": "Burmese", "ne": "Nepali", "nl": "Dutch",
    "no": "Norwegian", "pa": "Punjabi", "pl": "Polish", "ps": "Pashto", "pt": "Portuguese", "ro": "Romanian",
    "ru": "Russian", "sh": "Serbo-Croatian", "si": "Sinhala", "sk": "Slovak", "sl": "Slovenian", "sq": "Albanian",
    "sv": "Swedish", "sw": "Swahili", "ta": "Tamil", "te": "Telugu", "th": "Thai", "tl": "Tagalog", "tr": "Turkish",
    "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
"""The languages that a text can be said to be in, by code."""

_ONE_LANGUAGE = {
    "ARMENIAN": "hy", "BENGALI": "bn", "GEORGIAN": "ka", "GREEK": "el", "GUJARATI": "gu", "GURMUKHI": "pa",
    "HANGUL": "ko", "HEBREW": "he", "KANNADA": "kn", "KHMER": "km", "LAO": "lo", "MALAYALAM": "ml", "MYANMAR": "my",
    "SINHALA": "si", "TAMIL": "ta", "TELUGU": "te", "THAI": "th",
}  # fmt: skip
_FUNCTION_WORDS = {
    "af":
        "die van en te ons in om wat is word nie het vir sal of hierdie op dat dit aan moet met as deur kan jy tot by "
        "oor ook hulle jou na wees ek sy waar hoe hoeveel watter hoekom wie was",
    "ar":
        "في من أن على إلى كان التي مع عن خلال ما ذلك بعد كانت الذي لم هذا هذه لكن لا قبل بين قد كل أو غير مثل هناك "
        "عندما هو هي الذين كما نحو يكون حيث أحد إذا منذ فقط أي هل ماذا كيف أين متى لماذا كم أنا أنت نعم يمكن إن وهو "
        "وهي",
    "az":
        "və bu bir üçün ilə də da olan olaraq edir hansı nə kim harada necə niyə daha çox var deyil onun",
    "be":
        "і у ў на з па а не да што пра за ад як для таксама гэта мы яго я быў калі але які якія іх будзе ці каля дзе "
        "пасля хто чаму колькі якая яны ён",
    "bg":
        "на и в да се за е от с не ще по си че са това му като той до но след които го към при през всички още аз "
        "една тя тази който какво кой къде кога защо колко как коя кое или беше бил",
    "ca":
        "de la el en que i a els del les un per una amb és al no com més es l d va ha pel dels als però també són ser "
        "aquesta aquest seva seu sobre hi ho molt què quina quin quins quan on qui perquè jo tu em et ens si o entre "
        "fins això té tenen pot",
    "ckb":
        "لە و بە کە بۆ ئەو ئەم لەگەڵ دا چی کێ کوێ چۆن",
    "cs":
        "v a se na je že z s do to byl ve jako o pro k za by bylo který jeho po byla která které ale od si i tak jsou "
        "co také když byly mezi nebo ze jejich více až už při jen jsem jste ho být což tím tento není aby já ty mi "
        "mně můj moje jaký jaká jaké kdo kde proč jak kolik kdy můžete mohu mám máte ano ne tato toto tyto podle však "
        "u jej jich jim",
    "cy":
        "yn y i a yr ar o mae â am ei wedi gan oedd beth pwy ble pam sut sydd bod hwn",
    "da":
        "i og at det er en af til på de for har den med der ikke som et om jeg var han men vi så fra kan man sig skal "
        "efter blev hun være havde over vil ved hvor eller ud også kunne du meget da noget deres når hvad hvis "
        "hvorfor hvem hvilken hvilket hvilke hvordan mange mig dig min din nogle mellem ja nej nogen ingen kun nu "
        "mere hvornår disse denne",
    "de":
        "der die das und in von zu den im es ist er mit eine ein sich des auf für als sie dem wurde war dass nicht an "
        "einer nach auch um am werden wie aus bei hat wird über einem zum ich sind einen aber seine wurden waren "
        "unter diese mehr durch zur vor so wenn wir oder kann noch während dieser ihre sein nur zwischen ihr haben "
        "habe bin bist du mir mich mein meine dein kein keine was wo warum welche welcher welches wer wann können "
        "sollte gibt ja nein bitte man ihnen uns euch hier dazu jedoch sehr etwa etwas leider",
    "en":
        "the of in to and a was is that as it for on with by at he his from are this were an be has but which had "
        "their not i they been also who there her its will would or up she than can when into we our so these him "
        "what where some well however you your both before until do does did about my me us them how why if could "
        "should have no yes please any here am all only because between most such other while being over don doesn "
        "didn isn aren wasn ll ve re let may might must very many same",
    "eo":
        "la de kaj en estas kiu al el ke por kun mi ne kio kie kial kiel kiam li ŝi ĝi vi estis pri sed aŭ",
    "es":
        "de la el en que y a los se del un las una por con su para como al es no más fue lo pero también ha sus entre "
        "sobre sin este era o le cuando desde esta si son muy ser hay está están yo tú mi me te nos qué cuál cuáles "
        "cómo dónde quién cuándo cuánto cuántos porque puede puedes puedo tiene tienen hacer ese esa eso ya sí hasta "
        "donde ellos él ella usted fueron durante",
    "et":
        "ja on ei et kui ka see siis aga ma mis seda nii oli või oleks selle ning oma kes nagu kas midagi ole olen "
        "minu ta mitte kuidas kus miks millal mitu palju nad need sest meie sa te",
    "eu":
        "eta da ez zuen du zen dira ere baina dute ziren bere hori dela zer nola non nork noiz zergatik zein dut naiz "
        "bat hau izan edo",
    "fa":
        "و در به از که این را است با آن بر برای خود بود هم وی او تا نیز تو ما باید اما اگر پیش هر من باشد چه چرا "
        "چگونه کجا کی چند کدام آیا می شما یا شد های",
    "fi":
        "ja on että oli hän sen joka ei se hänen kun mutta myös ovat jälkeen sekä kuin jotka kanssa tämä ole he tai "
        "ollut voi mukaan vain kuten olivat sitä eivät jossa noin niin tällä ne kaikki jos mitä minä sinä me te mikä "
        "mitkä missä kuka miksi miten kuinka paljon monta milloin onko voin voit minun sinun minulla olen olet kyllä "
        "joten koska tässä siitä siinä joita jonka tämän voivat usein olisi eli",
    "fr":
        "de la le les et à des en a un du est une que il dans qui pour au par plus ont été sur pas avec ce se son sa "
        "sont mais était comme ne elle cette ils avait ses aux y leur on entre je nous ou également ces où si lui "
        "dont très cela aussi sous ainsi vous tu mon ma mes votre vos notre quel quelle quels quelles pourquoi "
        "comment combien quand être avoir peut peux fait faire oui non l d qu n s c j merci bien chez sans peu leurs "
        "après avant lorsque",
    "ga":
        "an agus ar na i ag go le sé is sin é sa seo leis ó ach mar gur nó ní do bhí tá cad cén conas cá den bhfuil",
    "gl":
        "de a o que e en do da os un unha as no se como para na non é por ao máis súa dos con seu á das foi tamén "
        "sobre nos ou está pero cando súas xa este foron ser moi pode cal onde quen eu ti me son ten pola polo nunha",
    "hi":
        "के में है की से और का को पर ने कि यह एक हैं भी नहीं लिए था इस थे जो हो वह कर या तो ही क्या कैसे कौन कब कहाँ "
        "कहां क्यों कितने कितना मैं आप मुझे मेरा उस साथ गया अपने थी होता होती",
    "ht":
        "nan ki yo se la pou ak yon li te pa sa kisa kote kijan poukisa konbyen mwen ou gen",
    "hu":
        "a az és is hogy nem egy már még csak meg volt azt mint ki ha el pedig ez több után így aki által vagy akkor "
        "ezt be mert minden ami van én te mi milyen mikor hol miért hány melyik kell lehet voltak vannak amely "
        "amelyek azonban",
    "id":
        "yang dan di untuk pada ini dengan itu dari dalam tidak ke adalah mereka oleh sebagai telah akan bahwa lebih "
        "banyak juga sebuah saya bisa setelah tentang seperti namun sangat tapi tersebut antara atau seorang karena "
        "beberapa hingga sudah hanya kami dapat kita anda ia apa siapa mana bagaimana mengapa kenapa berapa kapan ada "
        "kamu aku bukan iya ya jika agar secara para boleh adakah ialah tak daripada",
    "is":
        "í að og á sem er til við var um það með fyrir hann en af því frá ekki þar eftir þegar eru voru hefur þetta "
        "hafa ég hún verið hvað hver hvernig hvar hvers vegna þú eða",
    "it":
        "di la il e che a in un per del i è della le una nel ha si con non al da come dei più alla sono gli delle ma "
        "sua era anche loro suo lo nella questo tra essere hanno su o cui dal nei dalla nelle ci ai sul dai può ad "
        "ogni molti io tu mi ti mio mia cosa quale quali dove quando perché chi quanto quanti l d dell nell all dall "
        "sull puoi posso ho hai sei fare questa questi quello quella quelli così se degli sugli agli",
    "kk":
        "және бұл мен бір үшін деп бар емес қандай кім неше қайда қалай болып ол оның",
    "la":
        "et in est ad cum non ut quod qui sed ex per quae ab quid quis ubi sunt erat",
    "lb":
        "de an ass vun d déi en eng fir op mat net ze huet den dat ech wéi wat wou firwat sinn war dem",
    "lt":
        "ir kad į ar iš o su tik yra ne kaip taip tai buvo bet apie dėl nuo jau per dar iki už kas bus po jų labai "
        "prie jis ji kur kodėl kada kiek koks kokia kuris mes aš ką",
    "lv":
        "un ir ar ka par no uz kā arī bet bija kas vai es nav tā to lai ko tas ja jau viņš pēc kad pie līdz kur kāpēc "
        "cik kurš kāda kāds tu mēs ļoti",
    "mk":
        "на и во да се за е од со не ќе по што тој како но или кои кој која каде кога зошто колку беше сум тоа овој",
    "mr":
        "आहे आणि या हे ते तो ती नाही आहेत होते होता होती मध्ये पण काय कसे कुठे कोण कधी का किती एक मी तुम्ही साठी व",
    "ne":
        "छ र को मा का छन् यो हो लागि पनि गर्न भएको के कसरी कहाँ किन कति कुन तपाईं म एक हुन्छ थियो",
    "nl":
        "de van en het in een zijn op is te met voor hij dat die was aan door als werd ook er om uit tot naar maar "
        "deze niet ze wordt worden bij of dit hun dan zich na over meer zo nog werden veel kunnen waren tussen al zou "
        "geen hem kan omdat zoals wat ik je jij u mijn jouw uw we wij hoe waar waarom wie wanneer welke hoeveel heeft "
        "heb hebben ben bent moet ja nee graag hier daar haar zij echter",
    "no":
        "i og det er på som å til for av at har med en om den han ein var vi men dei ikke de jeg ikkje kan seg vil et "
        "så eit skal dette etter også ei eg fra ut frå eller hadde du når hun ved andre over mot denne ble være inn "
        "mellom meg deg selv hva hvis hvorfor hvem hvilken hvilket hvilke hvordan mange kva kvifor noen noe ingen ja "
        "nei bare mer flere hvor min din kor blir blei nå",
    "pl":
        "w i z na się do jest nie że to jak o po przez a od tym jego ale jako również dla za są jej był kiedy które "
        "który która aby tylko było oraz ich będzie jednak ze tego tak czy już co być lub ten między była jeśli "
        "bardzo tych przed ja ty mi mnie mój moja jaki jaka jakie kto gdzie dlaczego ile można mogę możesz mam masz "
        "ma mają proszę nim nich niej tej tę by żeby",
    "ps":
        "د په او چې کې له ته دا دی نه سره څه ولې څنګه چیرته څوک کله یو",
    "pt":
        "de a o e que em da do um os para uma no na com as é como foi se por não ele dos mais sua ao seu mas das à "
        "também foram são ser está nos ela ou pelo pela sobre até seus ter muito isso eu você me meu minha nós qual "
        "quais onde quem quando quanto quantos porque pode posso tem têm fazer esse essa este esta isto aos sim há já "
        "nas às num numa",
    "ro":
        "de în și a la se cu să o din pe care un pentru nu este mai că au sau al ce fost fi ca prin sunt lui când "
        "după dacă ale ar era unui cel toate am ei între iar cum această acest cele unde decât ne unor ai eu tu mi "
        "îmi cine câte câți cât ați are într dar",
    "ru":
        "и в на что с не как из по он к это его для был от до но о за а также было после были они она чтобы которые "
        "то у ее её я когда однако который их во еще ещё же была того более все всё или мы будет чем между бы так "
        "только этот где при вы ты мне меня мой моя какой какая какие кто почему сколько можно есть если быть очень "
        "да нет вам вас ли какое",
    "sh":
        "je u i se na za su da od a kako s koji ne iz bi što kao o to koje do biti nakon ili ali nije sa koja više "
        "prema također bilo još samo sve prije kada dok tako jer sam ja ti mi šta gdje gde zašto ko tko koliko kad li "
        "između međutim posle takođe је и у се на за су да од а како с који не из би што као о то које до бити након "
        "или али није са која више шта где зашто ко колико кад ли између",
    "sk":
        "a v sa na je do z s jeho po že o bol aj ako za od vo ktorý pri to ktoré pre bola sú boli ich potom však ale "
        "so bolo keď aby alebo podľa jej by čo kde tu už ktorá byť tento tieto nie medzi ja ty mi prečo kto koľko "
        "kedy aký aká môže môžete som",
    "sl":
        "je in v na se da ki za so pa z tudi s bi ne po kot še ali iz pri to od tako ni o bo do če ga ko med že tem "
        "bil bila več pred le kaj jaz ti kje kdo zakaj kako koliko kdaj katera kateri katero sem smo lahko kar",
    "sq":
        "të e në dhe një i për me që nga është më se do ka ishte si kjo nuk ky çfarë kush ku kur pse sa unë ti janë",
    "sv":
        "och i att som av en för det den på till är de med ett har var han inte från om under men hade vid sig kan "
        "efter hans så jag skulle sin ha mer när över eller hon än vi mellan detta ut här även bara vara mot deras du "
        "din dig mig min vad hur varför vem vilken vilket vilka finns många mycket dessa denna blev ska också inom ja "
        "nej oss",
    "sw":
        "ya na wa kwa ni katika za la kuwa hii huu cha yake kama lakini nini nani wapi lini gani au hiyo wake ambayo",
    "tl":
        "ang ng sa na mga ay at si ni hindi ito ako ka ko mo para may kung ano sino saan kailan bakit paano siya nila "
        "ba ilan isang alin",
    "tr":
        "bir ve bu için olarak daha ile çok en ancak olan gibi sonra kadar her veya değil ise de da ne diğer o önce "
        "ayrıca sadece ki var yok mı mi mu mü ben sen biz siz onlar bana sana benim senin nasıl neden nerede kim "
        "hangi kaç zaman nedir evet hayır lütfen şu bunu onun hem ama fakat eğer arasında tüm olduğunu olduğu oldu "
        "olup üzere vardır",
    "uk":
        "і на у в з що не до та за а про для як це й від його він я але є або чи так коли під по ми який які цього "
        "після її їх вже також щоб був вони тільки вона можна дуже буде тому навіть всі якщо яка ви ти мені мене мій "
        "хто де чому скільки яке ні бути між ж було були",
    "ur":
        "کے کی میں ہے نے سے کو اور کا کہ پر اس بھی ہوئے ان ہیں گیا یہ نہیں وہ تھا ہو کیا کیوں کیسے کہاں کب کون کتنے "
        "کتنا ایک مجھے آپ",
    "vi":
        "và không là của được đã cho tôi những trong với ở các đến cũng đó lại vào này thì để phải nhưng như chỉ từ "
        "bị sẽ trên còn mới đang đây tại rất vì gì nào bạn ai đâu sao nếu có một người khi hoặc hơn nhiều bao nhiêu "
        "thế việc về bằng hay theo do nên mà ra",
}  # fmt: skip
_LETTERS = {
    "af": "ëêéèïôûá", "ar": "ةىأإؤئي", "az": "əığöüçş", "be": "іўыэё", "bg": "ъщ", "ca": "àéèíïóòúüç", "ckb": "ەێۆڕڵ",
    "cs": "áčďéěíňóřšťúůýž", "cy": "âêîôûŵŷ", "da": "æøå", "de": "äöüß", "eo": "ĉĝĥĵŝŭ", "es": "áéíóúüñ",
    "et": "äöüõšž", "eu": "ñ", "fa": "پچژگکی", "fi": "äö", "fr": "àâçéèêëîïôùûüœ", "ga": "áéíóú", "gl": "áéíóúñü",
    "hu": "áéíóöőúüű", "is": "áéíóúýðþæö", "it": "àèéìòù", "kk": "әғқңөұүһіыэ", "lb": "äëéöü", "lt": "ąčęėįšųūž",
    "lv": "āčēģīķļņšūž", "mk": "ѓќѕјљњџ", "nl": "ëéïèöü", "no": "æøåéòô", "pl": "ąćęłńóśźż", "ps": "ښځټډړږېۍګ",
    "pt": "áâãàçéêíóôõú", "ro": "ăâîșțşţ", "ru": "ыэёъ", "sh": "čćđšžјљњћђџ", "sk": "áäčďéíĺľňóôŕšťúýž", "sl": "čšž",
    "sq": "ëç", "sv": "åäöé", "tl": "", "tr": "çğıöşüâ", "uk": "іїєґ", "ur": "ٹڈڑںےہھپچگکی",
    "vi": "àáâãèéêìíòóôõùúýăđĩũơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ",
}  # fmt: skip
_CHINESE = frozenset(
    "的了是在们們这這吗嗎么麼什没沒很谁誰怎呢吧给給从從对對个個说說为為过過还還你她它您哪那把让讓与时发發经經问题請请但而且也於种種並"
)
_KANA = ("HIRAGANA", "KATAKANA")
_HAN = "CJK"
_LATIN = "LATIN"

_NOT_PROSE = re.compile(
    # Code, quoted lines and tags
    r"```.*?(?:```|\Z)|`[^`\n]*`|^[ \t]*>[^\n]*|<[^<>\n]{1,200}>"
    # Addresses, paths, names of variables, abbreviations, options, what follows a hyphen, what has digits in it
    r"|(?<![!-~])(?:[!-~]*(?:[/\\_=@]|\.\w)|--?\w)[!-~]*|(?<=\w)-[^\W\d_]+|(?<![A-Za-z\d])[A-Za-z]*\d[A-Za-z\d]*"
    # Quotations
    r'|"[^"\n]{1,300}"|“[^”\n]{1,300}”|„[^“”\n]{1,300}[“”]|«[^»\n]{1,300}»|»[^«\n]{1,300}«|「[^」\n]{1,300}」|《[^》\n]{1,300}》',
    re.DOTALL | re.MULTILINE,
)
_NAMES_A_LANGUAGE = re.compile(
    rf"\b(?:{'|'.join(LANGUAGES.values())}|mandarin|cantonese|farsi|serbian|croatian|malay|filipino)\b"
    # To translate
    r"|\b(?:translat|translit|tradu[czi]|übersetz|vertaa?l|översätt|overset|käänn|přelož|překlad|tłumacz|przetłum|çevir"
    r"|terjemah|dịch|fordít|prevedi|перевед|перевод|переклад|μετάφρ|μεταφρ|अनुवाद|תרג)|ترجم|翻[译譯訳]|번역"
    # The larger languages as others name them, in the forms that are not their countries'
    r"|\b(?:englis|anglais|ingl[eéê]s|engels|angiels|anglič|anglick|englan[nt]i[ak]|ingilizce|inggris|английск|англійськ|αγγλικ|अंग्रेज"
    r"|deutsch\b|allemand|alem[aá]n\b|alemão|tedesco|duits\b|tysk\b|niemieck|něm[eč]|saksaksi|almanca|немецк|німецьк|जर्मन\b"
    r"|français|francés|francês|francese|französisch|frans\b|fransk|francusk|francouz|ranskaksi|fransızca|французск|французьк"
    r"|español|espagnol|spagnolo|espanhol|spanisch|spaans|spansk|hiszpańsk|španělsk|espanjaksi|ispanyolca|испанск|іспанськ|castellano"
    r"|italiano|italienisch|italiaans|italiensk|włosku|italsky|итальянск|português|portugu[eé]s|portugais|portugiesisch|portugalsku"
    r"|nederlands|niederländisch|néerlandais|holandés|holandês|olandese|russo\b|ruso\b|russe\b|russisch|rysk|rusça|по-\w{2,20}ски|русск|російськ"
    r"|polnisch|polsku|svenska\b|suomeksi|dansk\b|norsk\b|česky|češtin|türkçe|chinesisch|chinois|chino\b|cinese|chinês|chińsku|китайск"
    r"|japanisch|japonais|japonés|japonês|giapponese|японск|українськ|bahasa|tiếng)"
    r"|ελληνικά|हिंदी|हिन्दी|עברית|אנגלית|لغة|بال\w{2,20}ية|[语語]|[英中法德日俄]文|[가-힣]어로|[영한국일중독]어",
    re.IGNORECASE,
)
# Vowel signs are marks, not letters: those of Devanagari, and of the scripts of India and its neighbors.
_MARKS = r"\u0900-\u0903\u093a-\u094f\u0981-\u0dff\u0e31-\u0ecd\u102b-\u103e\u17b4-\u17d3"
_WORD = re.compile(rf"(?:[^\W\d_]|[{_MARKS}])+")
_PARTS = re.compile(r"\n+|:\s")
_MOST_LETTERS = 20_000
_LEAST_SHARE_OF_SCRIPT = 0.75
_LETTERS_OF_AN_IDEOGRAPH = 3
"""A Chinese, Japanese or Korean character says as much as this many letters."""
_FEWEST_LETTERS = 20
_FEWEST_KINDS = 2
"""Of function words; single letters from a to z do not count, which options, lists and formulas hold."""
_LEAST_SHARE_OF_WORDS = 0.1
_FEWEST_AHEAD = 2
_TIMES_AHEAD = 3
_MOST_BEHIND = 4
"""A text with so many signs of a language that is not left out, and not of the likeliest, is in two languages."""
_MOST_CANDIDATES = 4


class PossibleLanguages(NamedTuple):
    """The script of a text, and the languages it may be in, the likeliest first; none where that is unclear."""

    script: str
    languages: tuple[str, ...]

    def __str__(self) -> str:
        return LANGUAGES[self.languages[0]] if self.languages else f"{self.script.capitalize()} script"


def read_language(text: str) -> PossibleLanguages | None:
    """The script and the language of a text; ``None`` where it has no prose, too little of it, or several scripts.

    A language is named by its function words ("the", "und") and its letters ("ß"): at least two kinds of words, a tenth
    of all words, and three times as many signs as speak for any language that is left out. Up to four kindred
    languages may remain together. Code, data, addresses, quotations and names are not read.

    >>> str(read_language("The parcel is on its way.")), str(read_language("Das Paket ist noch nicht da."))
    ('English', 'German')
    >>> read_language("Paris, 42"), str(read_language("Привет, дорогие друзья! Добрый вечер."))
    (None, 'Cyrillic script')
    """
    text = unicodedata.normalize("NFC", text[:_MOST_LETTERS].strip())
    if text[:1] in ("{", "[") and text[-1:] in ("}", "]"):
        return None
    words = _WORD.findall(_NOT_PROSE.sub(" ", text))
    script, n_letters = _script_of(words)
    if script is None:
        return None
    if script == _HAN:
        languages = _by_ideographs("".join(words))
    elif script in _ONE_LANGUAGE:
        languages = (_ONE_LANGUAGE[script],)
    else:
        languages = _by_function_words(words)
        if languages or script == _LATIN:
            return PossibleLanguages(script, languages) if languages else None
    return PossibleLanguages(script, languages) if n_letters >= _FEWEST_LETTERS else None


def read_question(text: str) -> PossibleLanguages | None:
    """The language a question is asked in; ``None`` also where its parts are in several languages.

    A request often has a text with it that is in another language than the request itself.

    >>> str(read_question("Is the parcel on its way to me?"))
    'English'
    >>> read_question("Sum this up: Le colis est en route et il arrive dans la journée avec les autres.") is None
    True
    """
    whole = read_language(text)
    if whole is None:
        return None
    languages_of = _languages_of_signs()
    for part in _PARTS.split(text[:_MOST_LETTERS]):
        read = read_language(part)
        if read is not None and same_language(whole, read) is False:
            return None
        known = [languages_of[word] for word in _WORD.findall(part.lower()) if word in languages_of]
        if read is None and known and not any(languages.issuperset(whole.languages[:1]) for languages in known):
            return None
    return whole


def same_language(one: PossibleLanguages | None, other: PossibleLanguages | None) -> bool | None:
    """Whether two texts are in the same language; ``None`` where either is unclear, or kindred languages remain.

    >>> german, either = PossibleLanguages("LATIN", ("de",)), PossibleLanguages("LATIN", ("da", "no"))
    >>> norwegian = PossibleLanguages("LATIN", ("no",))
    >>> same_language(german, german), same_language(german, either), same_language(either, norwegian)
    (True, False, None)
    """
    if one is None or other is None:
        return None
    shared = set(one.languages) & set(other.languages)
    if one.script == other.script and not (one.languages and other.languages):
        return None
    if not shared:
        return False
    return True if one.languages[0] == other.languages[0] else None


def names_a_language(text: str) -> bool:
    """Whether a text names a language or asks for a translation, in any of the larger languages.

    >>> [names_a_language(text) for text in ("Say it in French.", "Sag es auf Englisch.", "用英语回答", "Who was it?")]
    [True, True, True, False]
    """
    return _NAMES_A_LANGUAGE.search(unicodedata.normalize("NFC", text[:_MOST_LETTERS])) is not None


def _script_of(words: list[str]) -> tuple[str | None, int]:
    """The script of most letters, and how many they are; single letters are formulas and list marks."""
    counts: Counter[str] = Counter()
    for word in words:
        for letter in word:
            script = _script(letter)
            if script in (_HAN, "HANGUL"):
                counts[script] += _LETTERS_OF_AN_IDEOGRAPH
            elif len(word) > 1:
                counts[script] += 1
    if not counts:
        return None, 0
    script, n_letters = counts.most_common(1)[0]
    return (script if n_letters >= _LEAST_SHARE_OF_SCRIPT * counts.total() else None), n_letters


@lru_cache(maxsize=4096)
def _script(letter: str) -> str:
    name = unicodedata.name(letter, "").partition(" ")[0]
    return _HAN if name in _KANA else name


def _by_ideographs(text: str) -> tuple[str, ...]:
    """Chinese or Japanese: a little kana decides, then signs that only Chinese writes often."""
    n_kana = sum("\u3041" <= letter <= "\u30ff" for letter in text)
    if n_kana * 8 > len(text):
        return ("ja",)
    kinds = _CHINESE & set(text)
    return ("zh",) if len(kinds) >= _FEWEST_KINDS and n_kana * 40 <= len(text) else ()


@lru_cache(maxsize=1)
def _languages_of_signs() -> dict[str, set[str]]:
    """For each function word, and each letter beyond ASCII behind a plus sign, the languages that use it."""
    languages: dict[str, set[str]] = {}
    for language, function_words in _FUNCTION_WORDS.items():
        letters = [f"+{letter}" for letter in _LETTERS.get(language, "")]
        for sign in [*function_words.split(), *letters]:
            languages.setdefault(sign, set()).add(language)
    return languages


def _by_function_words(words: list[str]) -> tuple[str, ...]:
    languages_of = _languages_of_signs()
    # Names hold function words of other languages (Las Vegas), codes look like some (AUS, DEN, World War I).
    plain = [word.lower() for at, word in enumerate(words) if at == 0 or not word[0].isupper()]
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for word, times in Counter(plain).items():
        for language in languages_of.get(word, ()):
            counts[language] += times
            kinds[language] += len(word) > 1 or not word.isascii()
    if not counts:
        return ()
    letters = {f"+{letter}" for letter in set("".join(plain)) if not letter.isascii()}
    met = [languages_of[sign] for sign in {*plain, *letters} & languages_of.keys()]
    signs = Counter(language for languages in met for language in languages)
    best = max(counts, key=lambda language: (signs[language], counts[language], language))
    if kinds[best] < _FEWEST_KINDS or counts[best] < _LEAST_SHARE_OF_WORDS * len(plain):
        return ()
    shared = Counter(language for languages in met if best in languages for language in languages)
    candidates = [best]
    for language in _FUNCTION_WORDS:
        ahead, behind = signs[best] - shared[language], signs[language] - shared[language]
        if language != best and ahead < max(_FEWEST_AHEAD, _TIMES_AHEAD * behind):
            if behind >= _MOST_BEHIND:
                return ()
            candidates.append(language)
    return tuple(candidates) if len(candidates) <= _MOST_CANDIDATES else ()
