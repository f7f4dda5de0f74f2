// How many one-way messages are under way: senders take room, what the receiver counted gives it back.
package kith.peers;

import org.apache.pekko.actor.AbstractActor;
import org.apache.pekko.actor.Props;

final class Window {
  static final int SIZE = 131072; // messages

  private long taken;
  private long base = -1;
  private long done;

  /** Takes room for n messages, or returns false when the end comes first. */
  synchronized boolean take(int n, long end) throws InterruptedException {
    while (base < 0 || taken + n > done + SIZE) {
      long left = end - System.nanoTime();
      if (left <= 0) {
        return false;
      }
      wait(left / 1_000_000 + 1);
    }
    taken += n;
    return true;
  }

  private synchronized void heard(long total) {
    if (base < 0) {
      base = total;
    }
    done = total - base;
    notifyAll();
  }

  /** The actor that hears the totals. */
  Props ear() {
    return Props.create(Ear.class, () -> new Ear(this));
  }

  static final class Ear extends AbstractActor {
    private final Window window;

    Ear(Window window) {
      this.window = window;
    }

    @Override
    public Receive createReceive() {
      return receiveBuilder().match(Work.class, w -> window.heard(w.number)).build();
    }
  }
}
