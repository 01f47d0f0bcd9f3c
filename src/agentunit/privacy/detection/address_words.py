"""The words that addresses are made of, in the languages whose addresses are recognised."""

from __future__ import annotations

from agentunit.privacy.detection.word_lists import words

TYPES_AFTER_NAME = words(
    """
    street st str road rd avenue ave av lane ln drive dr boulevard blvd court ct square sq way place pl terrace
    ter tce highway hwy close crescent cres parkway pkwy circle cir trail trl alley row walk grove gardens mews
    quay esplanade parade plaza hill ridge path pike loop bypass causeway gateway
    """
)
"""Follow the name of a street that starts with its house number: ``12 High Street``."""

TYPES_BEFORE_NAME = words(
    """
    rue avenue avda avenida boulevard boulevarden bulevar chemin allée allee impasse quai route via viale vicolo
    piazza corso strada largo calle carrer carretera paseo plaza camino rua travessa praça estrada alameda
    rodovia ulica aleja bulevardul calea jalan ulitsa prospekt náměstí třída trg cesta obala cité rruga οδός
    λεωφόρος улица проспект
    """
)
"""Precede the name of a street: ``rue de Pologne 36``."""

ABBREVIATED_TYPES_BEFORE_NAME = words(
    """
    ul. al. os. av. avda. bd. jl. nám. str. c/ pl. pza. bulv. ул. пр.
    """
)
"""The same, abbreviated: ``ul. Jesionowa 127``."""

TYPE_ENDINGS = words(
    """
    straße strasse str. gasse weg allee platz ring damm ufer chaussee steig graben brücke vej vænget gade allé
    stræde torv plads gata gaten gatan vägen vagen veien vegen stien bakken stigen gränd backen torget plassen
    katu tie kuja polku raitti straat laan plein kade dijk gracht singel steeg straeti stræti vegur braut götu
    krogen parken toften lunden svinget
    """
)
"""End the name of a street that is one word: ``Sludevej 13``."""

TYPES_BEFORE_NUMBER = words(
    """
    utca út útja u. tér tere krt. körút köz sor rkp. rakpart sétány fasor kapu ulice põik tänav tn mnt maantee
    puiestee pst iela gatvė sokak sok. caddesi cad. bulvarı str. straat weg gata
    """
)
"""Stand between the name of a street and the house number: ``Rákóczi út 66.`` A full stop at the end may be missing."""

DIRECTIONS = words(
    """
    northeast northwest southeast southwest north south east west ne nw se sw n s e w
    """
)
"""May follow a street: ``740 Water Street Southwest``."""

UNITS = words(
    """
    apt apartment suite ste unit flat apto depto appartement wohnung lgh lejl
    """
)
"""Stand before the number of a flat or an office."""

LONE_UNITS = frozenset(
    words(
        """
        apartment apt ste suite
        """
    )
)
"""Units that speak of an address even where no street stands beside them."""

PARTICLES = words(
    """
    de del della delle dei degli di da do dos das du des la le les las los el van der den ten von zu am an im
    auf of the and i z na nad pod u
    """
)
"""Lower-case words inside the names of streets and cities."""

CUES = frozenset(
    words(
        """
        address arrive billing cab corner deliver delivered delivery destination enter headquarters home house live
        lived lives living located mail mailed move moved office offices pickup reside resided residence resides
        residing send sent ship shipped shipping side stay staying stop taxi
        """
    )
)
"""Words that announce an address."""
