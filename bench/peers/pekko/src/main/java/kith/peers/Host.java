// The receiver's teller: while a sender watches, it hears every millisecond how much has been counted.
package kith.peers;

import java.time.Duration;
import org.apache.pekko.actor.AbstractActorWithTimers;
import org.apache.pekko.actor.ActorRef;

final class Host extends AbstractActorWithTimers {
  private static final String TICK = "tick";
  private static final byte[] NONE = {};
  private ActorRef watcher;
  private long told;

  @Override
  public Receive createReceive() {
    return receiveBuilder().match(Work.class, this::order).matchEquals(TICK, t -> tell()).build();
  }

  private void order(Work w) {
    if (w.op == Work.WATCH) {
      watcher = getSender();
      told = -1;
      getTimers().startTimerAtFixedRate(TICK, TICK, Duration.ofMillis(1));
      tell();
    } else {
      getTimers().cancel(TICK);
    }
  }

  private void tell() {
    long n = Entity.COUNT.sum();
    if (n != told) {
      told = n;
      watcher.tell(new Work(Work.TOTAL, "", n, NONE), getSelf());
    }
  }
}
