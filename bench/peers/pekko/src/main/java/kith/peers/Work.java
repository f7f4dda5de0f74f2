// The one message that travels: to an entity, back to an asker, and between the loads of the two nodes.
package kith.peers;

final class Work {
  static final byte TELL = 0; // count
  static final byte ASK = 1; // count and answer with the same
  static final byte WATCH = 2; // tell the sender of this how much has been counted, from now on
  static final byte UNWATCH = 3; // no longer
  static final byte TOTAL = 4; // number says how much has been counted

  final byte op;
  final String id;
  final long number;
  final byte[] payload;

  Work(byte op, String id, long number, byte[] payload) {
    this.op = op;
    this.id = id;
    this.number = number;
    this.payload = payload;
  }
}
