// Send: how a machine puts its messages together.

package membership

import (
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// post sends one message whose body append makes.
func (m *Machine) post(to peer.ID, kind wire.Kind, appendBody func(b []byte) []byte) {
	body := m.arena.End(appendBody(m.arena.Begin()))
	m.mail = append(m.mail, peer.Mail{To: to, Kind: kind, Body: body})
}

func (m *Machine) toward(to peer.ID) envelope { return envelope{to.Inc, m.st.Cluster} }

// nonce draws a random number that is not zero.
func (m *Machine) nonce() uint64 { return m.rng.Uint64() | 1 }
