// Package members holds the replicated state of membership as a value: the members with their statuses, who holds whom
// unreachable, tombstones, metadata, and the clock that names the version; and who is known to have seen it. States can
// be merged, compared, encoded, packed and told as deltas without a machine, and the rules of convergence and of
// leaders are functions of one state. When states are made and to whom they are sent is the matter of package
// membership.
//
// A Version is immutable once it is sealed, and shared by all who hold it. A State adds what one node knows of who has
// seen the version. Draft begins a change, Commit ends it.
package members
