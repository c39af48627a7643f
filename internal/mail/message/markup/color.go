package markup

import (
	"math"
	"strconv"
	"strings"
)

// color is an RGB colour with opacity.
type color struct {
	r, g, b, a uint8
	set        bool
}

// Text whose colour is nearer to its background than nearColors is invisible,
// and so is text with an alpha below invisibleAlpha of 255.
const (
	nearColors     = 0.1
	invisibleAlpha = 10
)

// near reports whether two colours are hardly distinguishable. The eye is most
// sensitive to green and least to red.
func near(x, y color) bool {
	dr, dg, db := float64(x.r)-float64(y.r), float64(x.g)-float64(y.g), float64(x.b)-float64(y.b)
	return math.Sqrt(2*dr*dr+4*dg*dg+3*db*db)/256 < nearColors
}

// over returns the colour blended with a background.
func (c color) over(background color) color {
	if c.a == 255 || !background.set {
		return c
	}
	mix := func(top, below uint8) uint8 {
		return uint8((int(top)*int(c.a) + int(below)*(255-int(c.a))) / 255)
	}
	return color{mix(c.r, background.r), mix(c.g, background.g), mix(c.b, background.b), 255, true}
}

// parseColor parses a colour of CSS or of an attribute. An invalid one is not
// set.
func parseColor(text string) color {
	text = strings.ToLower(strings.TrimSpace(text))
	if text == "" {
		return color{}
	}
	if text[0] == '#' {
		return hexColor(text[1:])
	}
	if open := strings.IndexByte(text, '('); open > 0 {
		return functionColor(text[:open], strings.TrimSuffix(text[open+1:], ")"))
	}
	if text == "transparent" {
		return color{set: true}
	}
	if value, ok := colorNames[text]; ok {
		return color{uint8(value >> 16), uint8(value >> 8), uint8(value), 255, true}
	}
	return hexColor(text)
}

func hexColor(text string) color {
	value, err := strconv.ParseUint(text, 16, 32)
	if err != nil {
		return color{}
	}
	wide := func(shift int) uint8 { return uint8(value>>shift&0xf) * 0x11 }
	switch len(text) {
	case 3:
		return color{wide(8), wide(4), wide(0), 255, true}
	case 4:
		return color{wide(12), wide(8), wide(4), wide(0), true}
	case 6:
		return color{uint8(value >> 16), uint8(value >> 8), uint8(value), 255, true}
	case 8:
		return color{uint8(value >> 24), uint8(value >> 16), uint8(value >> 8), uint8(value), true}
	}
	return color{}
}

// functionColor parses rgb(), rgba(), hsl() and hsla().
func functionColor(name, arguments string) color {
	parts := strings.FieldsFunc(arguments, func(r rune) bool { return r == ',' || r == '/' || r == ' ' })
	if len(parts) < 3 {
		return color{}
	}
	alpha := 1.0
	if len(parts) > 3 {
		alpha = number(parts[3], 1)
	}
	c := color{a: clamp(alpha * 255), set: true}
	switch name {
	case "rgb", "rgba":
		c.r, c.g, c.b = clamp(number(parts[0], 255)), clamp(number(parts[1], 255)), clamp(number(parts[2], 255))
	case "hsl", "hsla":
		hue, saturation, light := number(strings.TrimSuffix(parts[0], "deg"), 360), number(parts[1], 1), number(parts[2], 1)
		channel := func(offset float64) uint8 {
			k := math.Mod(offset+hue/30+12000, 12)
			amount := saturation * min(light, 1-light)
			return clamp(255 * (light - amount*max(-1, min(k-3, 9-k, 1))))
		}
		c.r, c.g, c.b = channel(0), channel(8), channel(4)
	default:
		return color{}
	}
	return c
}

// number parses a number, or a percentage of whole.
func number(text string, whole float64) float64 {
	text, percent := strings.CutSuffix(text, "%")
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(value) || math.Abs(value) > 1e6 {
		return 0
	}
	if percent {
		return value * whole / 100
	}
	return value
}

func clamp(value float64) uint8 { return uint8(max(0, min(255, math.Round(value)))) }

var colorNames = map[string]uint32{
	"aliceblue": 0xf0f8ff, "antiquewhite": 0xfaebd7, "aqua": 0x00ffff, "aquamarine": 0x7fffd4, "azure": 0xf0ffff,
	"beige": 0xf5f5dc, "bisque": 0xffe4c4, "black": 0x000000, "blanchedalmond": 0xffebcd, "blue": 0x0000ff,
	"blueviolet": 0x8a2be2, "brown": 0xa52a2a, "burlywood": 0xdeb887, "cadetblue": 0x5f9ea0, "chartreuse": 0x7fff00,
	"chocolate": 0xd2691e, "coral": 0xff7f50, "cornflowerblue": 0x6495ed, "cornsilk": 0xfff8dc, "crimson": 0xdc143c,
	"cyan": 0x00ffff, "darkblue": 0x00008b, "darkcyan": 0x008b8b, "darkgoldenrod": 0xb8860b, "darkgray": 0xa9a9a9,
	"darkgreen": 0x006400, "darkgrey": 0xa9a9a9, "darkkhaki": 0xbdb76b, "darkmagenta": 0x8b008b,
	"darkolivegreen": 0x556b2f, "darkorange": 0xff8c00, "darkorchid": 0x9932cc, "darkred": 0x8b0000,
	"darksalmon": 0xe9967a, "darkseagreen": 0x8fbc8f, "darkslateblue": 0x483d8b, "darkslategray": 0x2f4f4f,
	"darkslategrey": 0x2f4f4f, "darkturquoise": 0x00ced1, "darkviolet": 0x9400d3, "deeppink": 0xff1493,
	"deepskyblue": 0x00bfff, "dimgray": 0x696969, "dimgrey": 0x696969, "dodgerblue": 0x1e90ff, "firebrick": 0xb22222,
	"floralwhite": 0xfffaf0, "forestgreen": 0x228b22, "fuchsia": 0xff00ff, "gainsboro": 0xdcdcdc,
	"ghostwhite": 0xf8f8ff, "gold": 0xffd700, "goldenrod": 0xdaa520, "gray": 0x808080, "green": 0x008000,
	"greenyellow": 0xadff2f, "grey": 0x808080, "honeydew": 0xf0fff0, "hotpink": 0xff69b4, "indianred": 0xcd5c5c,
	"indigo": 0x4b0082, "ivory": 0xfffff0, "khaki": 0xf0e68c, "lavender": 0xe6e6fa, "lavenderblush": 0xfff0f5,
	"lawngreen": 0x7cfc00, "lemonchiffon": 0xfffacd, "lightblue": 0xadd8e6, "lightcoral": 0xf08080,
	"lightcyan": 0xe0ffff, "lightgoldenrodyellow": 0xfafad2, "lightgray": 0xd3d3d3, "lightgreen": 0x90ee90,
	"lightgrey": 0xd3d3d3, "lightpink": 0xffb6c1, "lightsalmon": 0xffa07a, "lightseagreen": 0x20b2aa,
	"lightskyblue": 0x87cefa, "lightslategray": 0x778899, "lightslategrey": 0x778899, "lightsteelblue": 0xb0c4de,
	"lightyellow": 0xffffe0, "lime": 0x00ff00, "limegreen": 0x32cd32, "linen": 0xfaf0e6, "magenta": 0xff00ff,
	"maroon": 0x800000, "mediumaquamarine": 0x66cdaa, "mediumblue": 0x0000cd, "mediumorchid": 0xba55d3,
	"mediumpurple": 0x9370db, "mediumseagreen": 0x3cb371, "mediumslateblue": 0x7b68ee, "mediumspringgreen": 0x00fa9a,
	"mediumturquoise": 0x48d1cc, "mediumvioletred": 0xc71585, "midnightblue": 0x191970, "mintcream": 0xf5fffa,
	"mistyrose": 0xffe4e1, "moccasin": 0xffe4b5, "navajowhite": 0xffdead, "navy": 0x000080, "oldlace": 0xfdf5e6,
	"olive": 0x808000, "olivedrab": 0x6b8e23, "orange": 0xffa500, "orangered": 0xff4500, "orchid": 0xda70d6,
	"palegoldenrod": 0xeee8aa, "palegreen": 0x98fb98, "paleturquoise": 0xafeeee, "palevioletred": 0xdb7093,
	"papayawhip": 0xffefd5, "peachpuff": 0xffdab9, "peru": 0xcd853f, "pink": 0xffc0cb, "plum": 0xdda0dd,
	"powderblue": 0xb0e0e6, "purple": 0x800080, "rebeccapurple": 0x663399, "red": 0xff0000, "rosybrown": 0xbc8f8f,
	"royalblue": 0x4169e1, "saddlebrown": 0x8b4513, "salmon": 0xfa8072, "sandybrown": 0xf4a460, "seagreen": 0x2e8b57,
	"seashell": 0xfff5ee, "sienna": 0xa0522d, "silver": 0xc0c0c0, "skyblue": 0x87ceeb, "slateblue": 0x6a5acd,
	"slategray": 0x708090, "slategrey": 0x708090, "snow": 0xfffafa, "springgreen": 0x00ff7f, "steelblue": 0x4682b4,
	"tan": 0xd2b48c, "teal": 0x008080, "thistle": 0xd8bfd8, "tomato": 0xff6347, "turquoise": 0x40e0d0,
	"violet": 0xee82ee, "wheat": 0xf5deb3, "white": 0xffffff, "whitesmoke": 0xf5f5f5, "yellow": 0xffff00,
	"yellowgreen": 0x9acd32,
}
