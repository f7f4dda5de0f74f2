// What a configuration makes of each message: its shard, its size, whether its sender waits for an answer.

package model

// shardOf returns the shard that a message is for.
func (c *Config) shardOf(m msg) int {
	switch {
	case m.from() == entity && c.Asks == CrossAsks:
		return 1 - m.seq()
	case m.from() == entity:
		return 0
	case c.Asks == CrossAsks: // each sender has a shard of its own
		if int(c.Senders[0]) == m.from() {
			return 0
		}
		return 1
	}
	return m.seq() % int(c.Shards)
}

// large reports whether a message is a large one.
func (c *Config) large(m msg) bool {
	return c.Large != NoLarge && m.from() == int(c.Senders[0]) && m.seq() == 0
}

// isAsk reports whether the sender of a message waits for an answer.
func (c *Config) isAsk(m msg) bool {
	switch {
	case c.Asks == NoAsks || m.bare() == tick:
		return false
	case c.Asks == PlainAsks:
		return true
	}
	return m.from() == entity || c.nested(m)
}

// nested reports whether the handler of a message asks in turn.
func (c *Config) nested(m msg) bool {
	switch c.Asks {
	case SelfAsk:
		return m.from() == int(c.Senders[0]) && m.seq() == 0
	case CrossAsks:
		return m.from() != entity && m.seq() == 0
	}
	return false
}

// asks returns the message that the handler of a nested ask sends, from an entity of that shard.
func (c *Config) asks(shard int) msg { return newMsg(entity, shard) }
