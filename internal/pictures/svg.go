// SVG: a picture as shapes, written by encoding/xml, so that every text is escaped.

package main

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Where things stand, in units of the picture.
const (
	width    = 860
	left     = 46 // of the names of the lanes
	right    = 24
	top      = 46 // of the title and the scale
	barHigh  = 12
	rowHigh  = 3
	lineHigh = 17 // of the legend
)

// style draws the same shapes on a light and on a dark page.
const style = `
svg{--ink:#1f2328;--faint:#d0d7de;--paper:#fff;--live:#2f6fdb;--message:#8250df}
@media(prefers-color-scheme:dark){svg{--ink:#e6edf3;--faint:#3d444d;--paper:#0d1117;--live:#79b8ff;--message:#d2a8ff}}
.paper{fill:var(--paper)}text{fill:var(--ink);font:12px system-ui,sans-serif}.title{font-size:15px;font-weight:600}
.scale,.track{stroke:var(--faint);stroke-width:1}.live{fill:var(--live)}
.message{stroke:var(--message);stroke-width:1}.dot{fill:var(--message)}
.mark{fill:var(--paper);stroke:var(--ink)}.number{font-size:10px;text-anchor:middle}.time{text-anchor:middle}
.starting{fill:#8c959f}.joining{fill:#bf8700}.weakly-up{fill:#d4a72c}.up{fill:#2da44e}.leaving{fill:#a475f9}
.exiting{fill:#6639ba}.suspended{fill:#fb8f44}.down,.removed{fill:#cf222e}
`

type document struct {
	XMLName xml.Name `xml:"svg"`
	Space   string   `xml:"xmlns,attr"`
	ViewBox string   `xml:"viewBox,attr"`
	Role    string   `xml:"role,attr"`
	Title   string   `xml:"title"`
	Style   string   `xml:"style"`
	Shapes  []any
}

type rect struct {
	XMLName xml.Name `xml:"rect"`
	Class   string   `xml:"class,attr"`
	X       string   `xml:"x,attr"`
	Y       string   `xml:"y,attr"`
	Width   string   `xml:"width,attr"`
	Height  string   `xml:"height,attr"`
}

type line struct {
	XMLName xml.Name `xml:"line"`
	Class   string   `xml:"class,attr"`
	X1      string   `xml:"x1,attr"`
	Y1      string   `xml:"y1,attr"`
	X2      string   `xml:"x2,attr"`
	Y2      string   `xml:"y2,attr"`
}

type circle struct {
	XMLName xml.Name `xml:"circle"`
	Class   string   `xml:"class,attr"`
	X       string   `xml:"cx,attr"`
	Y       string   `xml:"cy,attr"`
	R       string   `xml:"r,attr"`
}

type words struct {
	XMLName xml.Name `xml:"text"`
	Class   string   `xml:"class,attr,omitempty"`
	X       string   `xml:"x,attr"`
	Y       string   `xml:"y,attr"`
	Text    string   `xml:",chardata"`
}

// n writes a length with one decimal at most.
func n(v float64) string { return strconv.FormatFloat(float64(int(v*10+0.5))/10, 'f', -1, 64) }

// canvas collects the shapes of a picture.
type canvas struct {
	*picture
	shapes []any
}

func (c *canvas) add(shapes ...any) { c.shapes = append(c.shapes, shapes...) }

// x is where a moment stands; what lies before the picture stands at its edge.
func (c *canvas) x(at time.Duration) float64 {
	at = min(max(at, c.from), c.to)
	return left + float64(width-left-right)*float64(at-c.from)/float64(c.to-c.from)
}

// laneHigh is the height of a lane, y where lane i begins, floor where the last one ends.
func (c *canvas) laneHigh() float64    { return barHigh + 4 + float64(c.rows)*rowHigh + c.gap }
func (c *canvas) y(i int) float64      { return top + float64(i)*c.laneHigh() }
func (c *canvas) floor() float64       { return c.y(len(c.lanes)) }
func (c *canvas) middle(i int) float64 { return c.y(i) + barHigh + 4 + float64(c.rows)*rowHigh/2 }

// draw returns the picture as SVG.
func (p *picture) draw() ([]byte, error) {
	c := &canvas{picture: p}
	slices.SortStableFunc(c.marks, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
	high := c.floor() + 14 + lineHigh*float64(len(c.marks)+1)
	c.add(rect{Class: "paper", X: "0", Y: "0", Width: n(width), Height: n(high)},
		words{Class: "title", X: n(left), Y: "18", Text: p.title})
	c.scale()
	for i := range p.lanes {
		c.lane(i)
	}
	for _, l := range p.messages {
		c.add(line{Class: "message", X1: n(c.x(l.sent)), Y1: n(c.middle(l.from)), X2: n(c.x(l.handled)),
			Y2: n(c.middle(l.to))}, circle{Class: "dot", X: n(c.x(l.handled)), Y: n(c.middle(l.to)), R: "2"})
	}
	c.legend()
	text, err := xml.MarshalIndent(document{Space: "http://www.w3.org/2000/svg", Role: "img", Title: p.title,
		ViewBox: "0 0 " + n(width) + " " + n(high), Style: style, Shapes: c.shapes}, "", " ")
	return append(text, '\n'), err
}

// scale draws the times.
func (c *canvas) scale() {
	for at := time.Duration(0); at <= c.to-c.from; at += c.tick {
		x := n(c.x(c.from + at))
		c.add(line{Class: "scale", X1: x, Y1: n(top - 8), X2: x, Y2: n(c.floor() - c.gap/2)},
			words{Class: "time", X: x, Y: n(top - 12), Text: c.moment(at)})
	}
}

// moment writes a time in the unit of the scale.
func (c *canvas) moment(at time.Duration) string {
	unit, name := time.Second, " s"
	if c.tick < time.Second {
		unit, name = time.Millisecond, " ms"
	}
	return strconv.FormatFloat(float64(at.Round(c.tick/100)/(unit/1000))/1000, 'f', -1, 64) + name
}

// lane draws what a node was, and the shards that lived on it.
func (c *canvas) lane(i int) {
	l, y := &c.lanes[i], c.y(i)
	c.add(words{X: "8", Y: n(y + barHigh - 2), Text: l.name})
	if c.moves {
		c.add(line{Class: "track", X1: n(left), Y1: n(c.middle(i)), X2: n(width - right), Y2: n(c.middle(i))})
	}
	for _, s := range l.states {
		c.bar(s, y, barHigh)
	}
	for _, shard := range slices.Sorted(maps.Keys(l.shards)) {
		for _, s := range l.shards[shard] {
			c.bar(s, y+barHigh+4+float64(shard)*rowHigh, rowHigh-1)
		}
	}
}

func (c *canvas) bar(s span, y, high float64) {
	if s.to <= c.from || s.from >= c.to || s.to == s.from {
		return
	}
	from, to := c.x(s.from), c.x(s.to)
	c.add(rect{Class: s.what, X: n(from), Y: n(y), Width: n(max(to-from, 0.5)), Height: n(high)})
}

// legend draws the numbered moments and says what each was, and which colour is what.
func (c *canvas) legend() {
	y, taken := c.floor()+12, map[int]float64{}
	for i, m := range c.marks {
		number, names := strconv.Itoa(i+1), make([]string, len(m.lanes))
		slices.Sort(m.lanes)
		for k, l := range m.lanes {
			x, at := c.x(m.at), c.y(l)+barHigh/2
			if before, ok := taken[l]; ok {
				x = max(x, before+15)
			}
			taken[l] = x
			c.add(circle{Class: "mark", X: n(x), Y: n(at), R: "7"},
				words{Class: "number", X: n(x), Y: n(at + 3.5), Text: number})
			names[k] = c.lanes[l].name
		}
		c.add(words{X: n(left), Y: n(y + float64(i)*lineHigh), Text: fmt.Sprintf("%s.  %s, %s: %s", number,
			c.moment(m.at-c.from), strings.Join(names, " "), m.text)})
	}
	y += float64(len(c.marks)) * lineHigh
	x := float64(left)
	for _, what := range c.kinds() {
		c.add(rect{Class: what.class, X: n(x), Y: n(y - 9), Width: "10", Height: "10"},
			words{X: n(x + 14), Y: n(y), Text: what.text})
		x += 26 + 6.6*float64(len(what.text))
	}
}

// kind is a colour and what it stands for.
type kind struct{ class, text string }

// kinds returns the colours that the picture has, in the order in which nodes go through them.
func (c *canvas) kinds() (found []kind) {
	seen := map[string]bool{}
	for _, l := range c.lanes {
		for _, s := range l.states {
			seen[s.what] = seen[s.what] || c.x(s.to)-c.x(s.from) > 1
		}
	}
	for _, state := range []string{"starting", "joining", "weakly-up", "up", "suspended", "leaving", "exiting", "down"} {
		if seen[state] {
			found = append(found, kind{state, state})
		}
	}
	found = append(found, kind{"live", "a shard lives here"})
	if len(c.messages) > 0 {
		found = append(found, kind{"dot", "a message, from where it was sent to where it was handled"})
	}
	return found
}
