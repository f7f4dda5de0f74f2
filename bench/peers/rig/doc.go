// Package rig is what the programs of the peers share: each is one half of a pair of processes that answers the
// runner's calls on stdin, as receiver or as sender.
//
// The calls are lines of JSON (see internal/cli), so that programs in other languages answer the same ones:
//
//	serve {}               -> {"Addr","Version"}        be the receiver: 1,000 entities
//	dial  {"Addr"}         -> {}                        be the sender to that receiver
//	load  {Load}           -> {Result}                  send or ask for a while
//	usage {}               -> {Usage}                   what reached the handlers, and what this process used
//
// A Program has the parts of one peer; everything that decides how fair a comparison is (where is counted, what is in
// flight, what is timed) is here, once.
package rig
