// Work on the wire: fixed fields, the id's bytes, the payload; written straight into the transport's buffers.
package kith.peers;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.pekko.serialization.ByteBufferSerializer;
import org.apache.pekko.serialization.SerializerWithStringManifest;

public final class WorkSerializer extends SerializerWithStringManifest implements ByteBufferSerializer {
  @Override
  public int identifier() {
    return 730_001;
  }

  @Override
  public String manifest(Object o) {
    return "";
  }

  @Override
  public void toBinary(Object o, ByteBuffer to) {
    Work w = (Work) o;
    byte[] id = w.id.getBytes(StandardCharsets.ISO_8859_1);
    to.put(w.op).put((byte) id.length).putLong(w.number).put(id).put(w.payload);
  }

  @Override
  public Object fromBinary(ByteBuffer from, String manifest) {
    byte op = from.get();
    byte[] id = new byte[from.get()];
    long number = from.getLong();
    from.get(id);
    byte[] payload = new byte[from.remaining()];
    from.get(payload);
    return new Work(op, new String(id, StandardCharsets.ISO_8859_1), number, payload);
  }

  @Override
  public byte[] toBinary(Object o) {
    Work w = (Work) o;
    ByteBuffer b = ByteBuffer.allocate(10 + w.id.length() + w.payload.length);
    toBinary(o, b);
    return b.array();
  }

  @Override
  public Object fromBinary(byte[] bytes, String manifest) {
    return fromBinary(ByteBuffer.wrap(bytes), manifest);
  }
}
