// No host: when nobody can host a type, so that what is asked of it need not wait.

package shard

import "github.com/kith-io/kith/membership"

// NoHost reports whether no member of a view may host a type of that role: this node is up, and of all members that are
// not Down none has the role, joining ones included. One that joins later may. Before a node is up it knows too little
// to say so.
func NoHost(v *membership.View, role string) bool {
	if role == "" || v == nil {
		return false
	}
	self, ok := v.SelfMember()
	if !ok || self.UpNumber == 0 || !self.Status.Counts() {
		return false
	}
	for i := range v.Members {
		if m := &v.Members[i]; m.Status != membership.Down && m.HasRole(role) {
			return false
		}
	}
	return true
}
