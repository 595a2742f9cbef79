/* The files that a page has in it, as they stand in page/ and uplot/ (made by page/embed.awk). Used by this
 * room alone. */
#ifndef ASSAY_REPORT_PAGE_H
#define ASSAY_REPORT_PAGE_H

extern const char page_page_css[], page_page_js[];
extern const char page_uplot_min_css[], page_uplot_iife_min_js[], page_license[];

#endif
