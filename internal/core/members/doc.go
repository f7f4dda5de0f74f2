// Package members holds the replicated state of membership as a value: the members with their statuses, which observer
// holds which subject unreachable, tombstones, metadata, and the clock that names the version; and which members are
// known to have seen it. States can be merged, compared, encoded, packed and sent as deltas without a machine, and the
// rules of convergence and of leaders are functions of one state. When states are made and where they are sent is the
// matter of package membership.
//
// A Version is immutable once it is sealed, and shared by all its holders. A State adds which members have seen the
// version, as far as one node knows. Draft begins a change, Commit ends it.
package members
