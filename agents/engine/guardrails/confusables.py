"""Letters that look like ASCII letters, from Unicode's table of confusables.

Generated from `confusables.txt` of UTS #39 (Unicode 15.1) as shipped by confusable-homoglyphs
3.3.1; docs/decisions/confusables.md says how, and why it isn't a dependency. The data is ©
1991-2023 Unicode, Inc., under the Unicode License v3 (https://www.unicode.org/license.txt).
"""

import re
import unicodedata
from collections.abc import Mapping

# Omitted: what NFKC or a removed accent already maps, what stands for several letters, Han,
# Kana and Hangul (readers of Japanese don't take ノ for a slash), and currency signs.
LOOKALIKES: Mapping[str, str] = {
    "'": "ʹʻʼʽʾˈˊˋ˴՚՝ᑊᛌ‘’‛′‵ꞌ",
    "-": "˗‐‒–⁃−∸➖⨩⨪Ⲻ⸚",
    ".": "ꓸ꘎",
    "/": "᜵⁁⁄∕╱⟋⧶⧸Ⳇ𝈺",
    "2": "ƧƻϨᒿꙄꛯꝚ",
    "3": "ƷȜЗҘӠⳌꝪꞫ𑣊𖼻𝈆",
    "4": "Ꮞ𑢯",
    "5": "Ƽ𑢻",
    "6": "бᏮⳒ𑣕",
    "7": "𐓒𑣆𝈒",
    "8": "Ȣȣ𐌚",
    "9": "ⳊꝮ𑢬𑣌𑣖",
    ":": "ː˸։᛬᠃᠉⁚∶ꓽ꞉",
    "A": "ΑАᎪᗅꓮ𐊠𖽀",
    "B": "ƂƄΒБВЬѢҌᏏᏴᗷꓐꞴ𐊂𐊡𐌁",
    "C": "СҪᏟⲤꓚ𐊢𐌂𐐕𐔜𑣲🝌",
    "D": "ÐĐƉᎠᏧᗞᗪꓓ",
    "E": "ɆΕЕᎬ⋿ⴹꓰ𐊆𑢦𑢮",
    "F": "ƑϜᖴꓝꞘ𐊇𐊥𐔥𑢢𝈓",
    "G": "ǤԌᏀᏳꓖ",
    "H": "ĦΗНҢӇӉᎻᏂᏲᕼⱧⲎꓧ𐋏",
    "I": "ƖƗΙІӀᎥⲒ",
    "J": "ɈͿЈᎫᒍꓙꞲ",
    "K": "ΚКҚҞᏦᛕⱩⲔꓗꝀ𐔘",
    "L": "ŁᏞᒪⳐꓡ𐐛𐔦𑢣𑢲𖼖𝈪",
    "M": "ΜϺМӍᎷᗰᛖⲘꓟ𐊰𐌑",
    "N": "ƝΝⲚꓠ𐆎𐔓",
    "O": "ØƟǾΘΟОѲӨՕଠዐᎾᏫ⊖⊝⍬ⲞⴱⵁⵔꓳꝊ𐊒𐊫𐐄𐓂𐔖𑢵𝈚🜔",
    "P": "ΡРᏢᑭⲢꓑ𐊕",
    "Q": "ⵕ",
    "R": "ƦᎡᏒᖇꓣ𐒴𖼵𝈖",
    "S": "ЅՏᏕᏚꓢ𐊖𐐠𖼺",
    "T": "ŦƮȾΤТҬᎢ⊤⍡⟙Ⲧꓔ𐊗𐊱𐌕𑢼𖼊🝨",
    "U": "ɄՍሀᏌᑌ∪⋃ꓴ𐓎𑢸𖽂",
    "V": "ѴᏙᐯⴸꓦꛟ𐆗𐔝𑢠𖼈𝈍🜈",
    "W": "ԜᎳᏔꓪ𑣯",
    "X": "ΧХҲ᙭ᚷ╳ⲬⵝꓫꞳ𐆖𐊐𐊴𐌗𐌢𐔧𑣬",
    "Y": "ɎΥУҮҰᎩᎽⲨꓬ𐊲𑢤𖽃",
    "Z": "ƵȤΖᏃꓜ𐋵𑢩",
    "a": "ɑαа⍶⍺",
    "b": "ƀƃɓѣҍᑲᑳᖯ",
    "c": "ȼсҫᴄⲥꮯ𐐽",
    "d": "đƌɖɗԁᑯꓒ",
    "e": "ɇеҽҿ℮ꬲ",
    "f": "ƒքᵮẝꞙꬵ𑣂",
    "g": "ƍǥɠɡցᶃ",
    "h": "ħɦћһհꚕ",
    "i": "ıɨɩɪιіӏᵻᵼ⍳⍸ꙇꭵ𑣃",
    "j": "ɉϳј",
    "k": "ƙ",
    "l": "łƚǀɫɭᛁ∣⏽ⵏꓲ𐊊𐌉𐌠𖼨",
    "m": "ꭑ",
    "n": "ƞɲɳηոռᵰ",
    "o": "øɵθοσоѳөօഠဝჿᴏᴑⲟꝋꬽꬾꭴꮎꮻ𐐬𐓪𑣈𑣗",
    "p": "ƥρрᵽ⍴ⲣ",
    "q": "ʠԛգզ",
    "r": "ɍɼɽгғᴦᵲⲅꭇꭈꮁ",
    "s": "ƽʂѕᵴꜱꮪ𐑈𑣁",
    "t": "ŧƫƭᵵ",
    "u": "ʋυսᴜᵾꞟꭎꭒꮜ𐓶𑣘",
    "v": "νѵᴠ∨⋁ꮩ𑜆𑣀",
    "w": "ɯѡѽԝաᴡꝡꮃ𑓅𑜊𑜎𑜏",
    "x": "хᕁᕽ᙮⤫⤬⨯⨰",
    "y": "ƴɏɣʏγуүұყᶌỿꭚ𑣜",
    "z": "ƶȥʐᴢᵶꮓ𑣄",
}


class _FoldTable(dict[int, int]):
    """A one-to-one table for `str.translate`, so that positions don't change."""

    def __missing__(self, code: int) -> int:
        character = chr(code)
        decomposed = unicodedata.normalize("NFD", character)
        if unicodedata.category(character) == "Nd":
            folded = ord(str(unicodedata.digit(character)))
        elif decomposed[0].isascii() and all(map(unicodedata.combining, decomposed[1:])):
            folded = ord(decomposed[0])
        else:
            folded = code
        self[code] = folded
        return folded


_FOLD_TABLE = _FoldTable(
    {ord(c): ord(letter) for letter, alike in LOOKALIKES.items() for c in alike}
)


# Excludes ASCII and the scripts of Japanese, Chinese and Korean.
_FOLDABLE = re.compile("[^\\0-\x7f\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]")


def fold(text: str) -> str:
    """Replace lookalike letters; the length stays the same."""
    is_plain = text.isascii() or _FOLDABLE.search(text) is None
    return text if is_plain else text.translate(_FOLD_TABLE)


def foldable_positions(text: str) -> list[int]:
    """Return the positions of letters that may be folded."""
    return [match.start() for match in _FOLDABLE.finditer(text)]
