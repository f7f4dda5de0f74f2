// What a State tells of the credentials that it was made of.

package trust

import "time"

// Number returns how many times the credentials had changed when these were loaded, the start included.
func (c *State) Number() uint64 { return c.number }

// Subject returns the name in this node's own certificate.
func (c *State) Subject() string { return c.Certificate.Leaf.Subject.String() }

// Ends returns when this node's own certificate ends, in wall time.
func (c *State) Ends() time.Time { return c.ends }

// Serial returns the serial number of this node's own certificate, in hexadecimal digits.
func (c *State) Serial() string { return c.Certificate.Leaf.SerialNumber.Text(16) }

// Fingerprint returns the SHA-256 of this node's own certificate.
func (c *State) Fingerprint() string { return fingerprint(c.Certificate.Leaf.Raw) }

// Authorities returns the SHA-256 of each authority that is believed, in order: all of CAFile, or those of Issuers that
// Load names. It must not be changed.
func (c *State) Authorities() []string { return c.cas }

// Revoked returns how many certificates are on the revocation lists.
func (c *State) Revoked() int { return c.revoked.known() }

// Overdue returns how many of those lists should have been replaced by now, a wall time.
func (c *State) Overdue(now time.Time) int {
	n, _ := c.revoked.stale(now)
	return n
}
