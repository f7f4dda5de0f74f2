// What messages reach: counts, and answers when asked. Lives as an actor of its own name and as a sharded entity.
package kith.peers;

import java.util.concurrent.atomic.LongAdder;
import org.apache.pekko.actor.UntypedAbstractActor;

final class Entity extends UntypedAbstractActor {
  static final LongAdder COUNT = new LongAdder();

  @Override
  public void onReceive(Object o) {
    if (o instanceof Work w) {
      COUNT.increment();
      if (w.op == Work.ASK) {
        getSender().tell(w, getSelf());
      }
    }
  }
}
