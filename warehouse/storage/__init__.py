"""The only code that touches Delta: the Spark session and writer, the log as files, the JVM-free snapshot reader."""
