/* For the texts of exporters: numbers that read back exactly, and escaped text. */
#ifndef ASSAY_ASSAY_TEXT_H
#define ASSAY_ASSAY_TEXT_H

#include <assay/predict.h>

enum { PREDICT_DIGITS_SIZE = 40 };

/* The shortest decimal that reads back as VALUE, of a whole number without an exponent: "0.1", "65536". */
static inline const char *predict_digits(double value, char *buffer) {
    bool is_whole = fabs(value) < 9007199254740992.0 && value == trunc(value);
    snprintf(buffer, PREDICT_DIGITS_SIZE, "%.0f", is_whole ? value : 0);
    for (int digits = 15; !is_whole && digits <= 17; digits++) {
        snprintf(buffer, PREDICT_DIGITS_SIZE, "%.*g", digits, value);
        if (strtod(buffer, NULL) == value)
            break;
    }
    return buffer;
}

/* Appends WORDS inside a comment of C or XML: characters that could end it, begin another or join lines
 * become _. */
static inline void predict_comment(struct predict_output *output, const char *words) {
    for (char before = '-'; *words; words++) {
        bool good = (*words >= '0' && *words <= '9') || (*words >= 'A' && *words <= 'Z') ||
                    (*words >= 'a' && *words <= 'z') || strchr(" .,:;_+=()[]%", *words) ||
                    (*words == '-' && before != '-');
        before = good ? *words : '_';
        output->text(output->context, &before, 1);
    }
}

/* Appends FORMAT to the text, with only two conversions: %s is a string, written by ESCAPE (NULL:
 * unchanged), and %g a double by predict_digits(). */
__attribute__((format(printf, 3, 4))) static inline void
predict_print(struct predict_output *output, void (*escape)(struct predict_output *output, const char *text),
              const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    while (*format) {
        char digits[PREDICT_DIGITS_SIZE];
        size_t plain = strcspn(format, "%");
        output->text(output->context, format, plain);
        format += plain;
        if (*format == '\0')
            break;
        const char *text = format[1] == 's' ? va_arg(arguments, const char *)
                                            : predict_digits(va_arg(arguments, double), digits);
        if (escape && format[1] == 's')
            escape(output, text);
        else
            output->text(output->context, text, strlen(text));
        format += 2;
    }
    va_end(arguments);
}

#endif
