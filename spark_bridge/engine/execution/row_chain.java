package slackwater;

import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.rdd.ParallelCollectionPartition;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.api.python.PythonSQLUtils;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.Option;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.collection.JavaConverters;
import scala.collection.immutable.Map$;
import scala.reflect.ClassTag$;

/**
 * The rows of an Arrow file through Spark's compiled functions, and then through the RDDs of a plan, in one call.
 *
 * <p>See row_chain.py.
 */
public final class RowChain {
    /** Numbers of tasks that no job has. */
    private static final AtomicLong TASKS = new AtomicLong(1L << 48);

    /** For so few rows Spark's operators need no compiled projections of their own: code takes a millisecond each. */
    private static final int INTERPRETED_ROWS = 4096;

    private static final long MAX_BATCH_ROWS = 1L << 20;
    private static final long MAX_BATCH_BYTES = 64L << 20;

    private final StructType from;
    private final List steps;
    private final RDD plan;
    private final StructType to;
    private final UnsafeProjection copied;

    /** For `of`: a caller that has the class as an object finds no other constructor as easily. */
    public RowChain() {
        this(null, null, null, null);
    }

    private RowChain(StructType from, List steps, RDD plan, StructType to) {
        this.from = from;
        this.steps = steps;
        this.plan = plan;
        this.to = to;
        this.copied = from == null || !hasNested(from) ? null : UnsafeProjection.create(from);
    }

    private static boolean hasNested(StructType columns) {
        StructField[] fields = columns.fields();
        for (int at = 0; at < fields.length; at++) {
            DataType type = fields[at].dataType();
            if (type instanceof ArrayType || type instanceof MapType || type instanceof StructType) {
                return true;
            }
        }
        return false;
    }

    /**
     * @param from the columns of the file
     * @param steps projections and predicates of internal rows, in their order
     * @param plan an RDD without a shuffle over one partition of such rows; null without a plan
     * @param to the columns of the result
     */
    public RowChain of(StructType from, List steps, RDD plan, StructType to) {
        return new RowChain(from, steps, plan, to);
    }

    /** Puts the result in place of the rows: Arrow streams, each after its length. Compiled code has one row's memory. */
    public synchronized void run(String file) throws IOException {
        Iterator messages = PythonSQLUtils.readArrowStreamFromFile(file).toList().iterator();
        Iterator rows = new Passed(ArrowConverters$.MODULE$.fromBatchIterator(messages, from, "UTC", false, null));
        if (plan == null) {
            write(rows, file);
        } else {
            runPlan(rows, file);
        }
    }

    /** Runs the plan in a task of this thread: with memory and locks of its own, which end with it. */
    private void runPlan(Iterator rows, String file) throws IOException {
        List copies = new ArrayList();
        while (rows.hasNext()) {
            copies.add(((InternalRow) rows.next()).copy());
        }
        SparkEnv spark = SparkEnv.get();
        long number = TASKS.getAndIncrement();
        TaskMemoryManager memory = new TaskMemoryManager(spark.memoryManager(), number);
        Properties properties = new Properties();
        if (copies.size() <= INTERPRETED_ROWS) {
            properties.setProperty("spark.sql.codegen.factoryMode", "NO_CODEGEN");
        }
        TaskContextImpl context = new TaskContextImpl(
            0, 0, 0, number, 0, 1, memory, properties, null, TaskMetrics.empty(), 1,
            Map$.MODULE$.empty());
        spark.blockManager().registerTask(number); // it may read a broadcast
        TaskContext$.MODULE$.setTaskContext(context);
        try {
            write(plan.iterator(
                new ParallelCollectionPartition(0L, 0, JavaConverters.asScalaBuffer(copies), ClassTag$.MODULE$.Any()),
                context), file);
        } finally {
            try {
                context.markTaskCompleted(Option.empty());
            } finally {
                spark.blockManager().releaseAllLocksForTask(number);
                memory.cleanUpAllAllocatedMemory();
                TaskContext$.MODULE$.unset();
            }
        }
    }

    private void write(Iterator rows, String file) throws IOException {
        Iterator messages = ArrowConverters$.MODULE$.toBatchWithSchemaIterator(
            rows, to, MAX_BATCH_ROWS, MAX_BATCH_BYTES, "UTC", false);
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(file)));
        try {
            while (messages.hasNext()) {
                byte[] message = (byte[]) messages.next();
                out.writeInt(message.length);
                out.write(message);
            }
        } finally {
            out.close();
        }
    }

    /** The rows that pass all steps. */
    private final class Passed extends AbstractIterator {
        private final Iterator rows;
        private InternalRow found;

        Passed(Iterator rows) {
            this.rows = rows;
        }

        public boolean hasNext() {
            while (found == null && rows.hasNext()) {
                found = passed(readable((InternalRow) rows.next()));
            }
            return found != null;
        }

        public Object next() {
            if (!hasNext()) {
                throw new NoSuchElementException();
            }
            InternalRow row = found;
            found = null;
            return row;
        }

        /**
         * The row in Spark's own format, if it has nested columns. An array over Arrow's columns fails on a null element:
         * its copy() and its get() read the element without a check, and interpreted functions call get().
         */
        private InternalRow readable(InternalRow row) {
            return copied == null ? row : copied.apply(row);
        }

        private InternalRow passed(InternalRow row) {
            for (int at = 0; at < steps.size(); at++) {
                Object step = steps.get(at);
                if (!(step instanceof BasePredicate)) {
                    row = (InternalRow) ((Function1) step).apply(row);
                } else if (!((BasePredicate) step).eval(row)) {
                    return null;
                }
            }
            return row;
        }
    }
}
