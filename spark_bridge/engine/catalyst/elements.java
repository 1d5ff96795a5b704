package slackwater;

import org.apache.commons.lang3.ClassUtils;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import py4j.Gateway;
import scala.collection.Iterator;
import scala.collection.Seq;

/**
 * The elements of a sequence of Scala as py4j's references, with what Python asks of most of them, in one call.
 *
 * <p>See elements.py.
 */
public final class Elements {
    /**
     * A line for each element: its reference, its class, and its id within a plan, or -1. Null if an element is no part of
     * a plan.
     */
    public String lines(Gateway gateway, Seq elements) {
        for (Iterator each = elements.iterator(); each.hasNext();) {
            if (!(each.next() instanceof TreeNode)) {
                return null;
            }
        }
        StringBuilder lines = new StringBuilder();
        for (Iterator each = elements.iterator(); each.hasNext();) {
            Object element = each.next();
            lines.append(gateway.putNewObject(element)).append(' ').append(ClassUtils.getSimpleName(element));
            lines.append(' ').append(id(element)).append('\n');
        }
        return lines.toString();
    }

    private static long id(Object element) {
        if (element instanceof AttributeReference) {
            return ((AttributeReference) element).exprId().id();
        }
        return element instanceof Alias ? ((Alias) element).exprId().id() : -1;
    }
}
