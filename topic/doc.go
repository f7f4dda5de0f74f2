// Package topic publishes messages to subscribers in the whole cluster: at most once, and in order from one publisher.
//
//	topics, err := topic.Start(node)                 // on every node that publishes or subscribes
//	prices, err := topics.Open("prices")
//	for m := range prices.Subscribe(ctx) { ... }     // m.Payload, m.From, m.Missed
//	err = prices.Publish(payload)                    // from any node
//
// Each node with subscribers gets a message once, however many they are. A subscriber that is slow misses messages, and
// learns how many with the next one; the others keep their rate.
package topic
