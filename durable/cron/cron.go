// Lines: when they fire, and the reminders that are set by them.

// Package cron sets reminders of durable entities by cron lines. A line fires once for all that was missed, however long
// nobody lived, for the next reminder is set when the last one is handled: docs/durable.md. It is a module of its own, so
// that package durable links no parser.
package cron

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // zones are known where the machine has none

	"github.com/robfig/cron/v3"
)

// MaxLine is the most bytes of a line, and of the name of a zone.
const MaxLine = 256

// What Parse returns. Test with errors.Is: words are added.
var (
	// ErrLine: the line cannot be read.
	ErrLine = errors.New("cron: the line cannot be read")
	// ErrZone: no time zone has that name.
	ErrZone = errors.New("cron: no such time zone")
	// ErrNever: the line can be read, and fires never, as one for the 30th of February.
	ErrNever = errors.New("cron: the line never fires")
)

// Line is a cron line in a time zone. It does not change, and is safe for concurrent use. Make it with Parse.
type Line struct {
	line, zone string
	schedule   cron.Schedule
	in         *time.Location
}

var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// Parse reads a line of five fields (minute, hour, day of the month, month, day of the week), or @yearly, @monthly,
// @weekly, @daily, @hourly, or @every with a duration of at least a second, as @every 90m. zone is the name of the time
// zone in which it is meant, as Europe/Berlin; empty means UTC. Where clocks are set forth a time that is left out does
// not fire; where they are set back one that comes twice fires twice. Errors: ErrLine, ErrZone, ErrNever.
func Parse(line, zone string) (*Line, error) {
	switch {
	case len(line) > MaxLine:
		return nil, fmt.Errorf("%w: %d bytes, must be at most %d", ErrLine, len(line), MaxLine)
	case strings.Contains(line, "TZ="):
		return nil, fmt.Errorf("%w: the zone is given apart from the line", ErrLine)
	case len(zone) > MaxLine || zone == "Local":
		return nil, fmt.Errorf("%w: %.64q is none that all machines agree on", ErrZone, zone)
	}
	in, err := time.LoadLocation(zone)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrZone, err)
	}
	schedule, err := parser.Parse(line)
	if err != nil {
		return nil, fmt.Errorf("%w: %q: %w", ErrLine, line, err)
	}
	if every, is := strings.CutPrefix(line, "@every "); is { // the parser makes a second of less
		if d, err := time.ParseDuration(every); err != nil || d < time.Second {
			return nil, fmt.Errorf("%w: %q, must be at least a second", ErrLine, line)
		}
	}
	l := &Line{line, zone, schedule, in}
	if l.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, in)).IsZero() {
		return nil, fmt.Errorf("%w: %q", ErrNever, line)
	}
	return l, nil
}

// String returns the line and its zone.
func (l *Line) String() string {
	if l.zone == "" {
		return l.line
	}
	return l.line + " " + l.zone
}

// Next returns when the line fires first after a time: zero if that is more than a decade away, as before the 29th of
// February behind the year 2096 it is not.
func (l *Line) Next(after time.Time) time.Time {
	after = after.In(l.in)
	for range 3 { // the parser looks five years ahead; a leap year may be eight away
		if next := l.schedule.Next(after); !next.IsZero() {
			return next
		}
		after = after.AddDate(4, 0, 0)
	}
	return time.Time{}
}

// Reminder is a *durable.Tx.
type Reminder interface {
	Now() time.Time
	Remind(name string, at time.Time, body []byte) error
}

// Remind sets the reminder of a name to when the line fires next, by the clock of the entity's owner. Call it where the
// entity begins to need it, and each time in Type.Reminded. It takes the place of the entity's reminder of that name, so
// that calling it again changes nothing, and calling it with another line has that one count. Errors are those of
// durable.Tx.Remind.
func (l *Line) Remind(tx Reminder, name string, body []byte) error {
	return tx.Remind(name, l.Next(tx.Now()), body)
}
