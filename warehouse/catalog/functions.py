"""The functions of Spark SQL by their effect on rows, as Spark 4.2's registry groups them.

An expression of a declaration is evaluated once per row, when its file is loaded. So it may only have functions whose result
depends on their arguments alone.
"""

from __future__ import annotations

__all__ = ["AGGREGATES", "GENERATORS", "IMPURE", "ROW_WISE", "WINDOWS", "WITHOUT_PARENTHESES"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ROW_WISE = _words(
    """
    abs acos acosh add_months aes_decrypt aggregate array array_append array_compact array_contains
    array_distinct array_except array_insert array_intersect array_join array_max array_min array_position
    array_prepend array_remove array_repeat array_size array_sort array_union arrays_overlap arrays_zip ascii
    asin asinh atan atan2 atanh base64 bigint bin binary bit_count bit_get bit_length bitmap_bit_position
    bitmap_bucket_number bitmap_count boolean bround btrim cardinality cast cbrt ceil ceiling char char_length
    character_length chr coalesce collate collation concat concat_ws contains conv convert_timezone cos cosh
    cot crc32 csc date date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc
    dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear decimal decode degrees div double e
    element_at elt encode endswith equal_null exists exp expm1 extract factorial filter find_in_set flatten
    float floor forall format_number format_string from_csv from_json from_unixtime from_utc_timestamp
    from_xml get get_json_object getbit greatest hash hex hour hypot if ifnull ilike initcap instr int
    is_valid_utf8 is_valid_variant is_variant_null isnan isnotnull isnull json_array_length json_object_keys
    last_day lcase least left len length levenshtein like ln locate log log10 log1p log2 lower lpad ltrim
    luhn_check make_date make_dt_interval make_interval make_time make_timestamp make_timestamp_ltz
    make_timestamp_ntz make_valid_utf8 make_ym_interval map map_concat map_contains_key map_entries map_filter
    map_from_arrays map_from_entries map_keys map_values map_zip_with mask md5 minute mod month monthname
    months_between named_struct nanvl negative next_day nullif nullifzero nvl nvl2 octet_length overlay
    parse_json parse_url pi pmod position positive pow power printf quarter quote radians reduce regexp
    regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr
    repeat replace reverse right rint rlike round rpad rtrim schema_of_csv schema_of_json schema_of_variant
    schema_of_xml sec second sentences sequence sha sha1 sha2 shiftleft shiftright shiftrightunsigned sign
    signum sin sinh size slice smallint sort_array soundex space split split_part sqrt startswith str_to_map
    string struct substr substring substring_index tan tanh time time_bucket time_diff time_from_micros
    time_from_millis time_from_seconds time_to_micros time_to_millis time_to_seconds time_trunc timestamp
    timestamp_micros timestamp_millis timestamp_seconds timestampadd timestampdiff tinyint to_binary to_char
    to_csv to_date to_json to_number to_time to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp
    to_utc_timestamp to_varchar to_variant_object to_xml transform transform_keys transform_values translate
    trim trunc try_add try_aes_decrypt try_cast try_divide try_element_at try_make_interval try_make_timestamp
    try_make_timestamp_ltz try_make_timestamp_ntz try_mod try_multiply try_parse_json try_parse_url
    try_subtract try_to_binary try_to_date try_to_number try_to_time try_to_timestamp try_url_decode
    try_validate_utf8 try_variant_get typeof ucase unbase64 unhex unix_date unix_micros unix_millis
    unix_seconds unix_timestamp upper url_decode url_encode validate_utf8 variant_get vector_avg
    vector_cosine_similarity vector_inner_product vector_l2_distance vector_norm vector_normalize vector_sum
    weekday weekofyear width_bucket xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long
    xpath_number xpath_short xpath_string xxhash64 year zeroifnull zip_with
    """,
)
"""One value in, one value out, the same every time."""

AGGREGATES = _words(
    """
    any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate
    approx_top_k_combine array_agg avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg
    bitmap_or_agg bool_and bool_or collect_list collect_set corr count count_if count_min_sketch covar_pop
    covar_samp every first first_value grouping grouping_id histogram_numeric hll_sketch_agg hll_union_agg
    kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double
    kll_sketch_agg_float kurtosis last last_value listagg max max_by mean measure median min min_by mode
    percentile percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept
    regr_r2 regr_slope regr_sxx regr_sxy regr_syy schema_of_variant_agg skewness some std stddev stddev_pop
    stddev_samp string_agg sum theta_intersection_agg theta_sketch_agg theta_union_agg try_avg try_sum
    tuple_intersection_agg_double tuple_intersection_agg_integer tuple_sketch_agg_double
    tuple_sketch_agg_integer tuple_union_agg_double tuple_union_agg_integer var_pop var_samp variance
    """,
)
"""Many rows in, one value out."""

GENERATORS = _words(
    """
    collations explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer
    python_worker_logs range sql_keywords stack variant_explode variant_explode_outer
    """,
)
"""One row in, many rows out."""

WINDOWS = _words(
    """
    cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number session_window window
    window_time
    """,
)
"""The result depends on other rows."""

IMPURE = _words(
    """
    aes_encrypt curdate current_catalog current_database current_date current_path current_schema current_time
    current_timestamp current_timezone current_user input_file_block_length input_file_block_start
    input_file_name java_method localtime localtimestamp monotonically_increasing_id now rand randn random
    randstr reflect session_user shuffle spark_partition_id try_reflect uniform user uuid version
    """,
)
"""The result depends on the clock, chance, the session or the file's place."""

WITHOUT_PARENTHESES = _words(
    "current_date current_time current_timestamp current_user localtime localtimestamp session_user user",
)
"""The functions of :data:`IMPURE` that may also be called without parentheses."""
