#!/usr/bin/env python3
"""Draws picture.png and glyphs.json of this folder.

usage: make-picture.py        (needs: pip install pillow; the DejaVu fonts, Debian: apt-get install fonts-dejavu-core)

picture.png is a café's bill on a table, made up, with lines of several sizes, two of them tilted.
glyphs.json is the small bitmap font with which the example writes into its annotated copy: per printable character of
ASCII and Latin-1 and for the euro sign, one row of 8 pixels per hexadecimal pair, most significant bit left.
"""
import json
import os

from PIL import Image, ImageDraw, ImageFilter, ImageFont

HERE = os.path.dirname(os.path.abspath(__file__))
FONTS = "/usr/share/fonts/truetype/dejavu/"


def font(name, size):
    return ImageFont.truetype(os.path.join(FONTS, name + ".ttf"), size)


def tilted(picture, text, face, colour, background, centre, angle):
    """Pastes `text` on a panel of its own, turned by `angle` degrees."""
    box = face.getbbox(text)
    panel = Image.new("RGBA", (box[2] + 36, box[3] + 28), background)
    ImageDraw.Draw(panel).text((18, 12), text, font=face, fill=colour)
    panel = panel.rotate(angle, expand=True, resample=Image.BICUBIC)
    picture.paste(panel, (centre[0] - panel.width // 2, centre[1] - panel.height // 2), panel)


def bill():
    picture = Image.new("RGB", (760, 960), (116, 84, 60))
    draw = ImageDraw.Draw(picture)
    for y in range(0, 960, 6):  # the table's grain
        draw.line([(0, y), (760, y + 9)], fill=(108 + y % 14, 78 + y % 9, 55), width=2)
    draw.rectangle([96, 36, 664, 772], fill=(250, 248, 240))
    ink = (38, 36, 44)
    title, body, small = font("DejaVuSerif-Bold", 50), font("DejaVuSerif", 29), font("DejaVuSerif", 24)
    draw.text((380, 92), "Harbour Cafe", font=title, fill=ink, anchor="mm")
    draw.text((380, 152), "14 Lighthouse Road, Port Ellen", font=small, fill=ink, anchor="mm")
    draw.line([(130, 190), (630, 190)], fill=ink, width=2)
    rows = [("Flat white x2", "7.60"), ("Blueberry tart", "4.25"), ("Orange juice x3", "9.90"), ("Smoked salmon", "12.50")]
    for i, (item, price) in enumerate(rows):
        draw.text((134, 222 + 54 * i), item, font=body, fill=ink)
        draw.text((628, 222 + 54 * i), price, font=body, fill=ink, anchor="ra")
    draw.line([(130, 452), (630, 452)], fill=ink, width=2)
    total = font("DejaVuSans-Bold", 36)
    draw.text((134, 480), "TOTAL", font=total, fill=ink)
    draw.text((628, 480), "34.25", font=total, fill=ink, anchor="ra")
    draw.text((134, 556), "Paid by card, 6 September", font=small, fill=ink)
    draw.text((134, 600), "Order #58213", font=small, fill=ink)
    tilted(picture, "Thank you!", font("DejaVuSerif-BoldItalic", 44), (176, 40, 52), (250, 248, 240), (420, 690), 7)
    tilted(picture, "OPEN EVERY DAY 8 AM - 6 PM", font("DejaVuSans-Bold", 30), (255, 252, 236), (28, 92, 84, 255), (380, 866), -4)
    picture.filter(ImageFilter.GaussianBlur(0.5)).quantize(64, dither=Image.NONE).save(os.path.join(HERE, "picture.png"), optimize=True)


def glyphs():
    face = font("DejaVuSansMono-Bold", 13)
    rows = {}
    for code in [*range(33, 127), *range(161, 173), *range(174, 256), ord("€")]:
        cell = Image.new("L", (8, 16), 0)
        ImageDraw.Draw(cell).text((0, 0), chr(code), font=face, fill=255)
        pixels = list(cell.tobytes())
        rows[chr(code)] = "".join(f"{sum((pixels[8 * y + x] > 110) << (7 - x) for x in range(8)):02x}" for y in range(16))
    with open(os.path.join(HERE, "glyphs.json"), "w") as out:
        json.dump(rows, out, indent=1, ensure_ascii=False)
        out.write("\n")


bill()
glyphs()
