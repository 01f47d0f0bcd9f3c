"""The words that names are told from: what stands inside names, and what only looks like one."""

from __future__ import annotations

from agentunit.privacy.detection.word_lists import words

PARTICLES = frozenset(
    words(
        """
        van der den de la las los del della dello di da das dos do du le von zu zur zum ten ter te bin ibn binti al
        el ben abu af av vom auf dem y
        """
    )
)
"""Lower-case words that stand inside names."""

SUFFIXES = frozenset(
    words(
        """
        jr sr ii iii iv phd md
        """
    )
)
"""Words that follow a name."""

AMBIGUOUS = frozenset(
    words(
        """
        mark will may grace rose bill jack frank art hope faith joy dawn april june august summer christian rich
        drew sue pat chase grant wade gene ray guy miles dean earl duke lance cliff brook brooke amber crystal ruby
        pearl ivy iris violet olive heather holly penny candy sandy dusty rusty sunny stormy destiny harmony melody
        charity prudence patience victor carol robin jay bob rob max mercy norm buck chip chuck dick pierce lane
        reed dale glen heath forest hunter mason carter cooper tanner parker tucker porter taylor tyler sky star
        angel king prince major german early young long an see so my in van le do page case price royal son autumn
        precious edit else job line nail nova pal said sol tea urban ale ales aria aura bent curt fedora fern franc
        gale imam karma kelvin lore magnolia mare nadir nil rune rut sari tiara tor valentine vita
        """
    )
)
"""Frequent first names that are just as frequent as plain words."""

PLAIN_WORDS = frozenset(
    words(
        """
        monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
        september october november december christmas easter ramadan hanukkah thanksgiving halloween mr mrs ms miss
        dr prof sir madam lord lady google amazon microsoft apple facebook meta netflix twitter youtube instagram
        linkedin paypal visa mastercard amex uber airbnb tesla toyota honda bmw ford nokia samsung sony intel nvidia
        oracle ibm siri alexa cortana gemini claude chatgpt gpt windows android linux python java javascript github
        docker english bible god jesus christ allah i'm i'd i'll i've us on in as an at be by do go he if is it me
        my no of ok or so to up we am are internet covid hi hello hey dear thanks regards sincerely mom dad mum
        daddy mommy grandma grandpa oh ah uh um mm mm-hmm hmm huh yeah yes yep nope wow ha haha lol please judge
        captain colonel professor doctor president senator officer uncle aunt auntie detective mayor queen princess
        pope chancellor minister governor sheriff coach nurse general sergeant lieutenant inspector mister madame
        monsieur herr frau phd md mars venus jupiter mercury saturn america europe asia africa washington england
        scotland wales britain north south east west northern southern eastern western san santa saint st santo los
        las el la new mount mt lake fort port cape upper lower great grand uss usns po api json http https url id
        usa uk eu un nato fbi cia nasa wikipedia wikimedia imdb tiktok reddit spotify whatsapp telegram snapchat
        pinterest yahoo bing firefox chromium safari pytorch tensorflow numpy pandas kubernetes postgres mysql sqlite
        typescript yaml toml html bluetooth wifi airplane smartphone laptop website email online offline config
        codebase dataset timestamp username workflow webpage metadata plugin backend frontend
        """
    )
)
"""Capitalised words that are no names here, or open the name of something else, whatever the lists say."""

OPENERS = frozenset(
    words(
        """
        San Santa Saint St Santo Sao São Los Las El La New Mount Mt Lake Fort Port Cape Upper Lower Great Grand
        North South East West The USS USNS HMS
        """
    )
)
"""Words that open the names of places and things: what follows them is no person."""

THINGS = frozenset(
    words(
        """
        inc ltd llc plc corp corporation company co gmbh ag sa group holdings bank university college school
        institute hospital clinic church club museum library hotel airport station stadium park bridge tower center
        centre mall store shop restaurant cafe theater theatre foundation association society committee council
        agency department ministry office court services solutions systems technologies technology software labs
        partners associates capital media studios records entertainment magazine times post news weekly journal
        press cup league championship award awards prize festival street st road rd avenue ave lane ln drive dr
        boulevard blvd square way place terrace highway county city village town island islands river valley beach
        bay mountain mountains hills ocean sea desert airlines airways motors foods pharmaceuticals industries
        international insurance act law theorem syndrome disease box str bypass causeway circle corner corners
        courts crescent crossing crossroad estate estates expressway extension falls flat flats fork forks freeway
        gardens gateway greens harbor harbors heights hollow inlet junction junctions knolls landing loop manor
        meadows mews motorway oval parkway parkways pass passage path pike pines plain plains plaza points ports
        ranch rapids ridge ridges row rue run shoals shore shores skyway spring springs spur squares stravenue
        summit throughway trace track trafficway trail tunnel turnpike underpass union unions viaduct views ville
        walks well
        """
    )
)
"""A candidate that runs into one of these is the name of a thing, not of a person."""

SURNAME_ENDINGS = words(
    """
    sson dottir ssen nsen rsen lsen ksen dsen tsen nson rson lson dson tson kson ova eva ov ev eff off ovic evic
    ovich evich sky ski ska skaya skiy skij wicz vich enko chuk czyk dze shvili oglu nen mann stein meier meyer
    maier escu poulos poulou akis idis iadis quist qvist strom lund gren berger baum ez etti elli ucci ini arov
    eyev ullah uddin zadeh yan datter ssohn huber bauer hoff dijk stra sma inga aite iene aitis auskas
    """
)
"""Endings that surnames have in many languages, folded."""
