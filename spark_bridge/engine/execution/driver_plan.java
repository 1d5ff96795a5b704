package slackwater;

import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Properties;
import java.util.StringTokenizer;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.Partition;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.rdd.MapPartitionsRDD;
import org.apache.spark.rdd.ParallelCollectionPartition;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.python.PythonSQLUtils;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.ProjectingInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.types.DataTypeUtils$;
import org.apache.spark.sql.execution.RDDScanExec;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import py4j.Gateway;
import scala.Function3;
import scala.Option;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.collection.JavaConverters;
import scala.collection.Seq;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Nil$;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction0;

/**
 * A physical plan that runs in the driver's thread, in one call, and the rows that its leaves read.
 *
 * <p>See driver_plan.py.
 */
public final class DriverPlan {
    /** Numbers of tasks that no job has. */
    private static final AtomicLong TASKS = new AtomicLong(1L << 48);

    /** For so few rows Spark's operators need no compiled projections of their own: code takes a millisecond each. */
    private static final int INTERPRETED_ROWS = 4096;

    private static final long MAX_BATCH_ROWS = 1L << 20;
    private static final long MAX_BATCH_BYTES = 64L << 20;

    private final RDD plan;
    private final List leaves;
    private final StructType to;
    private final Properties compiled;
    private final Properties interpreted;

    /** For `of`: a caller that has the class as an object finds no other constructor as easily. */
    public DriverPlan() {
        this(null, null, null, null);
    }

    private DriverPlan(RDD plan, List leaves, StructType to, SparkSession session) {
        this.plan = plan;
        this.leaves = leaves;
        this.to = to;
        this.compiled = new Properties();
        this.interpreted = new Properties();
        if (session != null) {
            this.compiled.putAll(JavaConverters.mapAsJavaMap(session.sessionState().conf().getAllConfs()));
            this.interpreted.putAll(this.compiled);
            this.interpreted.setProperty("spark.sql.codegen.factoryMode", "NO_CODEGEN");
        }
    }

    /**
     * @param plan the RDD of a plan
     * @param leaves the RDDs at the leaves of the plan whose rows a run brings, made by `leaf`
     * @param to the columns of the result
     * @return null if the plan needs a shuffle
     */
    public DriverPlan of(RDD plan, List leaves, StructType to, SparkSession session) {
        return isNarrow(plan) ? new DriverPlan(plan, leaves, to, session) : null;
    }

    private static boolean isNarrow(RDD rows) {
        for (Iterator each = rows.dependencies().iterator(); each.hasNext();) {
            org.apache.spark.Dependency dependency = (org.apache.spark.Dependency) each.next();
            if (dependency instanceof ShuffleDependency || !isNarrow(dependency.rdd())) {
                return false;
            }
        }
        return true;
    }

    /** An RDD of one partition, whose rows a run brings. */
    public RDD leaf(SparkContext context, StructType columns) {
        return new Leaf(context, columns);
    }

    /** A reader of Arrow files with these columns. */
    public Reader reader(StructType columns, int layout) {
        return new Reader(columns, layout);
    }

    /** The plan with some of its leaves replaced. */
    public SparkPlan over(SparkPlan plan, List before, List after) {
        Map leaves = new IdentityHashMap();
        for (int at = 0; at < before.size(); at++) {
            leaves.put(before.get(at), after.get(at));
        }
        return (SparkPlan) replaced(plan, leaves);
    }

    private static TreeNode replaced(TreeNode node, Map leaves) {
        if (leaves.containsKey(node)) {
            return (TreeNode) leaves.get(node);
        }
        List children = new ArrayList();
        for (Iterator each = node.children().iterator(); each.hasNext();) {
            children.add(replaced((TreeNode) each.next(), leaves));
        }
        return children.isEmpty() ? node : node.withNewChildren(JavaConverters.asScalaBuffer(children));
    }

    /** Runs a prepared plan as a job, and writes its rows: Arrow streams, each after its length. */
    public void job(final SparkPlan plan, final StructType to, final String file, SparkSession session) {
        SQLExecution$.MODULE$.withSQLConfPropagated(session, new AbstractFunction0() {
            public Object apply() {
                try {
                    write((Iterator) plan.executeCollectIterator()._2(), to, file);
                } catch (IOException error) {
                    throw new java.io.UncheckedIOException(error);
                }
                return null;
            }
        });
    }

    /** Sets where the columns of a leaf are in rows of a layout; without it they are the first columns. */
    public synchronized void order(int leaf, int layout, Seq ordinals) {
        ((Leaf) leaves.get(leaf)).orders.put(Integer.valueOf(layout), ordinals);
    }

    /**
     * Writes the result over held rows into a file: Arrow streams, each after its length.
     *
     * @param given the references of the rows of each leaf, with a space after each
     */
    public synchronized void run(Gateway gateway, String given, String file) throws IOException {
        int count = 0;
        StringTokenizer references = new StringTokenizer(given);
        for (int at = 0; at < leaves.size(); at++) {
            Leaf leaf = (Leaf) leaves.get(at);
            leaf.rows = (Held) gateway.getObject(references.nextToken());
            count += leaf.rows.rows.length;
        }
        runTask(count, file);
    }

    /** Puts the result over rows of the only leaf, which a file has, in place of these rows. */
    public synchronized void stream(String file, int count) throws IOException {
        Leaf leaf = (Leaf) leaves.get(0);
        if (leaf.reader == null) {
            leaf.reader = new Reader(leaf.columns, 0);
        }
        leaf.streamed = leaf.reader.stream(file);
        runTask(count, file);
    }

    /** Runs the plan in a task of this thread: with memory and locks of its own, which end with it. */
    private void runTask(int count, String file) throws IOException {
        Properties properties = count <= INTERPRETED_ROWS ? interpreted : compiled;
        SparkEnv spark = SparkEnv.get();
        long number = TASKS.getAndIncrement();
        TaskMemoryManager memory = new TaskMemoryManager(spark.memoryManager(), number);
        final TaskContextImpl context = new TaskContextImpl(
            0, 0, 0, number, 0, 1, memory, properties, null, TaskMetrics.empty(), 1,
            Map$.MODULE$.empty());
        spark.blockManager().registerTask(number); // it may read a broadcast
        TaskContext$.MODULE$.setTaskContext(context);
        try {
            write(new Partitions(plan, context), to, file);
        } finally {
            try {
                context.markTaskCompleted(Option.empty());
            } finally {
                spark.blockManager().releaseAllLocksForTask(number);
                memory.cleanUpAllAllocatedMemory();
                TaskContext$.MODULE$.unset();
                for (int at = 0; at < leaves.size(); at++) {
                    ((Leaf) leaves.get(at)).forget();
                }
            }
        }
    }

    private static void write(Iterator rows, StructType to, String file) throws IOException {
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

    /** The batches of an Arrow file, each in a partition. */
    public RDD messages(String file, SparkContext context) {
        scala.collection.immutable.List messages = PythonSQLUtils.readArrowStreamFromFile(file).toList();
        return context.parallelize(messages, Math.max(1, messages.size()), (ClassTag) ClassTag$.MODULE$.apply(byte[].class));
    }

    /**
     * The rows of Arrow batches, which tasks convert.
     *
     * <p>Rows with nested columns are in Spark's own format, see `Reader.stream`.
     *
     * @param messages the batches
     * @param like the RDD of a DataFrame over other batches with these columns, whose function converts
     */
    public RDD converted(RDD messages, RDD like, StructType columns) throws Exception {
        java.lang.reflect.Field function = MapPartitionsRDD.class.getDeclaredField("f");
        function.setAccessible(true);
        RDD rows = new MapPartitionsRDD(messages, (Function3) function.get(like), false, false, false,
            (ClassTag) ClassTag$.MODULE$.apply(InternalRow.class), (ClassTag) ClassTag$.MODULE$.apply(byte[].class));
        if (!hasNested(columns)) {
            return rows;
        }
        Seq attributes = DataTypeUtils$.MODULE$.toAttributes(columns);
        return new RDDScanExec(attributes, rows, "rows", new UnknownPartitioning(0), (Seq) Nil$.MODULE$).execute();
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

    /** Rows for the leaves of several plans. */
    public static final class Held {
        final InternalRow[] rows;
        final int layout;

        Held(InternalRow[] rows, int layout) {
            this.rows = rows;
            this.layout = layout;
        }
    }

    /** Reads rows of Arrow files. */
    public static final class Reader {
        private final StructType columns;
        private final UnsafeProjection copied;
        private final boolean hasNested;
        private final int layout;

        Reader(StructType columns, int layout) {
            this.columns = columns;
            this.layout = layout;
            this.copied = UnsafeProjection.create(columns);
            this.hasNested = hasNested(columns);
        }

        /** All rows, in Spark's own format. */
        public synchronized Held rows(String file) {
            List rows = new ArrayList();
            for (Iterator each = batches(file); each.hasNext();) {
                rows.add(copied.apply((InternalRow) each.next()).copy());
            }
            return new Held((InternalRow[]) rows.toArray(new InternalRow[rows.size()]), layout);
        }

        /**
         * The rows, each valid until the next one is read.
         *
         * <p>Nested columns are in Spark's own format. An array over Arrow's columns fails on a null element: its copy()
         * and its get() read the element without a check, and interpreted functions call get().
         */
        Iterator stream(String file) {
            final Iterator batches = batches(file);
            if (!hasNested) {
                return batches;
            }
            return new AbstractIterator() {
                public boolean hasNext() {
                    return batches.hasNext();
                }

                public Object next() {
                    return copied.apply((InternalRow) batches.next());
                }
            };
        }

        private Iterator batches(String file) {
            Iterator messages = PythonSQLUtils.readArrowStreamFromFile(file).toList().iterator();
            return ArrowConverters$.MODULE$.fromBatchIterator(messages, columns, "UTC", false, null);
        }
    }

    /** A leaf of a plan: one partition with the rows of the run. */
    public static final class Leaf extends RDD {
        final StructType columns;
        final Map orders = new HashMap();
        Held rows;
        Iterator streamed;
        Reader reader;

        Leaf(SparkContext context, StructType columns) {
            super(context, (Seq) Nil$.MODULE$, (ClassTag) ClassTag$.MODULE$.apply(InternalRow.class));
            this.columns = columns;
        }

        void forget() {
            rows = null;
            streamed = null;
        }

        public Iterator compute(Partition split, TaskContext context) {
            return rows == null
                ? streamed
                : new Given(rows.rows, columns, (Seq) orders.get(Integer.valueOf(rows.layout)));
        }

        public Partition[] getPartitions() {
            return new Partition[] {
                new ParallelCollectionPartition(0L, 0, (Seq) Nil$.MODULE$, (ClassTag) ClassTag$.MODULE$.Any())
            };
        }
    }

    /** Rows of an array, with their columns in the order of a leaf. */
    private static final class Given extends AbstractIterator {
        private final InternalRow[] rows;
        private final ProjectingInternalRow projected;
        private int at;

        Given(InternalRow[] rows, StructType columns, Seq ordinals) {
            this.rows = rows;
            this.projected = ordinals == null ? null : ProjectingInternalRow.apply(columns, ordinals);
        }

        public boolean hasNext() {
            return at < rows.length;
        }

        public Object next() {
            if (at == rows.length) {
                throw new NoSuchElementException();
            }
            InternalRow row = rows[at++];
            if (projected == null) {
                return row;
            }
            projected.project(row);
            return projected;
        }
    }

    /** The rows of all partitions, one after the other. */
    private static final class Partitions extends AbstractIterator {
        private final RDD plan;
        private final TaskContext context;
        private int next;
        private Iterator rows;

        Partitions(RDD plan, TaskContext context) {
            this.plan = plan;
            this.context = context;
        }

        public boolean hasNext() {
            while (rows == null || !rows.hasNext()) {
                if (next == plan.partitions().length) {
                    return false;
                }
                rows = plan.iterator(plan.partitions()[next++], context);
            }
            return true;
        }

        public Object next() {
            if (!hasNext()) {
                throw new NoSuchElementException();
            }
            return rows.next();
        }
    }
}
