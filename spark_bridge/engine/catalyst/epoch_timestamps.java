package slackwater;

import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.DataTypes;

/**
 * Times as Spark has them: boxed longs, where py4j would pass an Integer for a time close to 1970.
 *
 * <p>See epoch_timestamps.py.
 */
public final class EpochTimestamps {
    /** Sets the value of a variable, in microseconds since 1970. */
    public void set(AtomicReference value, long us) {
        value.set(Long.valueOf(us));
    }

    /** A constant, in microseconds since 1970. */
    public Literal literal(long us) {
        return new Literal(Long.valueOf(us), DataTypes.TimestampType);
    }
}
